#include "engine/schedule/scheduler.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace weft {

namespace {

std::int64_t missing_tokens(const ScheduledSequence& sequence) { return sequence.token_count() - sequence.computed; }

// Whether it does not decode: its prompt is computed, or all its tokens once more.
bool is_of_prompt(const ScheduledSequence& sequence) { return sequence.output.empty() || missing_tokens(sequence) > 1; }

}  // namespace

Scheduler::Scheduler(SchedulerSettings settings, std::int64_t pages)
    : settings_(std::move(settings)), pool_(pages, settings_.block, settings_.caches_prefixes) {
  const auto sequences = static_cast<std::size_t>(settings_.sequences);
  const auto blocks = static_cast<std::size_t>(pages_of(settings_.longest));
  chunks_.reserve(sequences);
  first_scheduled_.reserve(sequences);
  preempted_.reserve(sequences);
  order_.reserve(sequences);
  found_.reserve(blocks);
  block_tokens_.resize(static_cast<std::size_t>(settings_.block));
  spare_pages_.resize(sequences);
  for (auto& memory : spare_pages_) memory.reserve(blocks);
}

void Scheduler::add(ScheduledSequence& sequence) {
  sequence.arrival_ = next_arrival_++;
  sequence.at_ = waiting_.insert(place_of(sequence), &sequence);
}

// Where a sequence waits by the policy, if it did not wait before.
Scheduler::Sequences::iterator Scheduler::place_of(const ScheduledSequence& sequence) {
  auto at = waiting_.end();
  if (!settings_.has_priorities) return at;
  const auto rank = [](const ScheduledSequence& one) { return std::tuple(one.priority, one.arrival_); };
  while (at != waiting_.begin() && rank(sequence) < rank(**std::prev(at))) --at;
  return at;
}

void Scheduler::remove(ScheduledSequence& sequence) {
  if (sequence.is_running_) {
    release_pages(sequence);
    running_.erase(sequence.at_);
  } else {
    waiting_.erase(sequence.at_);
  }
}

std::span<const Chunk> Scheduler::schedule() {
  chunks_.clear();
  first_scheduled_.clear();
  preempted_.clear();
  rows_left_ = settings_.rows;
  logit_rows_left_ = settings_.logit_rows;
  counts_.deferred = 0;
  begin_pace();
  if (!schedule_running()) schedule_waiting();
  // The sequences that were to decode lost their pages, and the prompts had no room beside them.
  if (chunks_.empty() && !running_.empty()) {
    pace_.begin(0);
    schedule_running();
  }
  counts_.rows = settings_.rows - rows_left_;
  return chunks_;
}

void Scheduler::begin_pace() {
  prompts_left_ =
      std::count_if(running_.begin(), running_.end(), [](const ScheduledSequence* one) { return is_of_prompt(*one); });
  const std::int64_t decoding = std::ssize(running_) - prompts_left_;
  pace_.begin(decoding, pace_.is_on() ? short_prompts(decoding) : 0);
}

// Prompts that fit into one step, of the sequences that can run beside the ones that decode. Prefixes that are cached
// are not considered.
std::int64_t Scheduler::short_prompts(std::int64_t decoding) const {
  std::int64_t found = 0, pages = pool_.free_count();
  const auto count = [&](const ScheduledSequence& sequence) {
    if (is_of_prompt(sequence) && missing_tokens(sequence) <= settings_.rows) ++found;
  };
  for (const ScheduledSequence* sequence : running_) count(*sequence);
  auto slots = settings_.sequences - std::ssize(running_);
  for (auto at = waiting_.begin(); at != waiting_.end() && slots > 0 && found <= decoding; ++at, --slots) {
    pages -= pages_of((*at)->token_count());
    if (pages < 0) break;
    count(**at);
  }
  return found;
}

// Returns whether a sequence was preempted.
bool Scheduler::schedule_running() {
  const std::int64_t before = counts_.preemptions;
  order_.assign(running_.begin(), running_.end());
  for (ScheduledSequence* sequence : order_) {
    if (rows_left_ == 0) break;
    if (sequence->is_running_) add_chunk(*sequence);
  }
  return counts_.preemptions > before;
}

void Scheduler::add_chunk(ScheduledSequence& sequence) {
  const std::int64_t missing = missing_tokens(sequence);
  const bool is_prompt = is_of_prompt(sequence);
  const std::int64_t of_prompt = std::ssize(sequence.prompt) - sequence.computed;
  const bool ends_with_prompt = settings_.has_phases && of_prompt > 0;
  std::int64_t rows = std::min(ends_with_prompt ? of_prompt : missing, rows_left_);
  if (is_prompt) {
    const bool others_wait = !waiting_.empty() && !is_full_ && std::ssize(running_) < settings_.sequences;
    prompts_left_ = std::max<std::int64_t>(prompts_left_ - 1, 0);
    rows = std::min(rows, pace_.most_rows(sequence.computed, prompts_left_ > 0 || others_wait));
  }
  const bool has_others = running_.size() + waiting_.size() > 1;
  if (const auto checkpoint = next_checkpoint(sequence)) rows = std::min(rows, *checkpoint - sequence.computed);
  if (settings_.long_prefill_threshold > 0 && has_others && !settings_.has_whole_prompts)
    rows = std::min(rows, settings_.long_prefill_threshold);
  const std::int64_t before_logits = std::max<std::int64_t>(first_logit_row(sequence) - sequence.computed, 0);
  if (sequence.wants_logits && rows - before_logits > logit_rows_left_) rows = before_logits + logit_rows_left_;
  if (settings_.has_whole_prompts && rows < missing) return;
  if (rows == 0 || !reserve_pages(sequence, sequence.computed + rows)) return;
  Chunk chunk{.sequence = &sequence, .rows = rows};
  if (sequence.wants_logits) chunk.logit_rows = std::max<std::int64_t>(rows - before_logits, 0);
  if (rows == missing && !ends_with_prompt) {
    chunk.draft_rows = draft_rows(sequence, std::min(rows_left_ - rows, logit_rows_left_ - chunk.logit_rows));
    reserve_pages(sequence, sequence.token_count() + chunk.draft_rows);
    chunk.rows += chunk.draft_rows;
    chunk.logit_rows += chunk.draft_rows;
  }
  if (is_prompt) pace_.add(sequence.computed, rows);
  chunks_.push_back(chunk);
  rows_left_ -= chunk.rows;
  logit_rows_left_ -= chunk.logit_rows;
}

// A draft uses the sequence's own and free pages only; it preempts no sequence.
std::int64_t Scheduler::draft_rows(const ScheduledSequence& sequence, std::int64_t most) const {
  const std::int64_t room =
      (std::ssize(sequence.pages) + pool_.free_count()) * settings_.block - sequence.token_count();
  return std::max<std::int64_t>(std::min({std::ssize(sequence.draft), most, room}), 0);
}

// Returns false if the sequence itself had to give up its pages.
bool Scheduler::reserve_pages(ScheduledSequence& sequence, std::int64_t tokens) {
  while (std::ssize(sequence.pages) < pages_of(tokens)) {
    if (const std::optional<std::int32_t> page = pool_.take()) {
      sequence.pages.push_back(*page);
      continue;
    }
    ScheduledSequence& preempted = victim();
    preempt(preempted);
    if (&preempted == &sequence) return false;
  }
  return true;
}

ScheduledSequence& Scheduler::victim() const {
  if (!settings_.has_priorities) return *running_.back();
  return **std::max_element(running_.begin(), running_.end(),
                            [](const ScheduledSequence* a, const ScheduledSequence* b) {
                              return std::tuple(a->priority, a->arrival_) < std::tuple(b->priority, b->arrival_);
                            });
}

void Scheduler::preempt(ScheduledSequence& sequence) {
  const auto chunk =
      std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& known) { return known.sequence == &sequence; });
  if (chunk != chunks_.end()) {
    rows_left_ += chunk->rows;
    logit_rows_left_ += chunk->logit_rows;
    chunks_.erase(chunk);
  }
  ++sequence.preemptions;
  ++counts_.preemptions;
  preempted_.push_back(&sequence);
  wait_again(sequence);
}

void Scheduler::wait_again(ScheduledSequence& sequence) {
  release_pages(sequence);
  sequence.is_running_ = false;
  sequence.computed = 0;
  waiting_.splice(settings_.has_priorities ? place_of(sequence) : waiting_.begin(), running_, sequence.at_);
}

void Scheduler::release_pages(ScheduledSequence& sequence) {
  pool_.release(sequence.pages);
  spare_pages_.push_back(std::move(sequence.pages));
  sequence.pages.clear();
}

void Scheduler::schedule_waiting() {
  // A sequence that waits for a prefix holds up no other. The bound is for queues of very many of them.
  const std::int64_t most_deferred = settings_.sequences;
  is_full_ = false;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (rows_left_ == 0 || !pace_.has_room() || std::ssize(running_) == settings_.sequences ||
        counts_.deferred == most_deferred)
      return;
    ScheduledSequence& sequence = **at++;
    if (settings_.has_whole_prompts && missing_tokens(sequence) > rows_left_) return;
    switch (admit(sequence)) {
      case Admission::admitted:
        break;
      case Admission::deferred:
        ++counts_.deferred;
        break;
      case Admission::full:
        is_full_ = true;
        return;
    }
  }
}

Scheduler::Admission Scheduler::admit(ScheduledSequence& sequence) {
  KvPrefix prefix = pool_.root(sequence.cache_salt);
  find_prefix(sequence, prefix);
  if (is_computed_now(sequence, prefix)) return Admission::deferred;
  const auto free = pool_.free_count() -
                    std::count_if(found_.begin(), found_.end(), [&](std::int32_t page) { return pool_.is_free(page); });
  const std::int64_t pages = pages_of(sequence.token_count());
  if (pages - std::ssize(found_) > free) return Admission::full;
  std::optional<KvPagePool::Part> part = find_part(sequence, prefix);
  if (part && pool_.is_free(part->page) && pages - std::ssize(found_) == free) part.reset();  // its page is needed

  sequence.pages = std::move(spare_pages_.back());
  spare_pages_.pop_back();
  for (const std::int32_t page : found_) pool_.share(page);
  if (part) pool_.share(part->page);
  sequence.pages.assign(found_.begin(), found_.end());
  // Pages for all its tokens, so that the sequences which run never wait for each other's prompts.
  while (std::ssize(sequence.pages) < pages) sequence.pages.push_back(pool_.take().value());
  sequence.prefix_ = prefix;
  sequence.published_ = std::ssize(found_);
  sequence.computed = std::ssize(found_) * settings_.block;
  if (part) {
    settings_.copy_page(part->page, sequence.pages[found_.size()]);
    pool_.release(part->page);
    sequence.computed += part->tokens;
  }
  sequence.kept_ = sequence.computed;
  if (!std::exchange(sequence.was_scheduled_, true)) {
    first_scheduled_.push_back(&sequence);
    if (pool_.is_caching() && sequence.first_logit_row > 0) {
      sequence.cached_tokens = sequence.computed;
      counts_.prefix_cache_queries += sequence.token_count();
      counts_.prefix_cache_hits += sequence.computed;
    }
  }
  sequence.is_running_ = true;
  running_.splice(running_.end(), waiting_, sequence.at_);
  add_chunk(sequence);
  return Admission::admitted;
}

// Fills found_ with blocks before the first row whose logits are wanted. So at least the last token is computed.
void Scheduler::find_prefix(const ScheduledSequence& sequence, KvPrefix& prefix) {
  found_.clear();
  if (!pool_.is_caching()) return;
  const std::int64_t most = std::min(first_logit_row(sequence), cacheable_tokens(sequence)) / settings_.block;
  while (std::ssize(found_) < most) {
    const std::optional<std::int32_t> page = pool_.find(prefix, block_of(sequence, std::ssize(found_)));
    if (!page) return;
    found_.push_back(*page);
  }
}

// Whether a sequence of this step computes the block that follows the blocks in found_, at `prefix`, or the part of it
// before a checkpoint.
bool Scheduler::is_computed_now(const ScheduledSequence& sequence, const KvPrefix& prefix) {
  if (!pool_.is_caching()) return false;
  const std::int64_t block = std::ssize(found_), begin = block * settings_.block;
  const std::int64_t most = std::min(first_logit_row(sequence), cacheable_tokens(sequence));
  return std::any_of(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) {
    const ScheduledSequence& other = *chunk.sequence;
    if (other.published_ != block || other.prefix_.id != prefix.id || other.prefix_.hash != prefix.hash) return false;
    const std::int64_t end = std::min(begin + settings_.block, next_checkpoint(other).value_or(INT64_MAX));
    if (other.computed + chunk.rows <= begin || cacheable_tokens(other) < end || end > most) return false;
    for (std::int64_t i = begin; i < end; ++i)
      if (other.token(i) != sequence.token(i)) return false;
    return true;
  });
}

// The part of the block after those in found_, at `prefix`.
std::optional<KvPagePool::Part> Scheduler::find_part(const ScheduledSequence& sequence, const KvPrefix& prefix) {
  if (!settings_.copy_page) return std::nullopt;
  const std::int64_t begin = std::ssize(found_) * settings_.block;
  const std::int64_t end = std::min({first_logit_row(sequence), cacheable_tokens(sequence), begin + settings_.block});
  return end <= begin ? std::nullopt : pool_.find_part(prefix, tokens_of(sequence, begin, end));
}

std::span<const std::int32_t> Scheduler::block_of(const ScheduledSequence& sequence, std::int64_t index) {
  return tokens_of(sequence, index * settings_.block, (index + 1) * settings_.block);
}

std::span<const std::int32_t> Scheduler::tokens_of(const ScheduledSequence& sequence, std::int64_t begin,
                                                   std::int64_t end) {
  const auto count = static_cast<std::size_t>(end - begin);
  for (std::size_t i = 0; i < count; ++i) block_tokens_[i] = sequence.token(begin + static_cast<std::int64_t>(i));
  return std::span(block_tokens_).first(count);
}

void Scheduler::publish(ScheduledSequence& sequence) {
  if (!pool_.is_caching()) return;
  const std::int64_t computed = std::min(sequence.computed, cacheable_tokens(sequence));
  for (; (sequence.published_ + 1) * settings_.block <= computed; ++sequence.published_)
    pool_.publish(sequence.prefix_, sequence.pages[static_cast<std::size_t>(sequence.published_)],
                  block_of(sequence, sequence.published_));
  if (sequence.computed == std::ssize(sequence.prompt) - kTokensAfterCheckpoint) publish_checkpoint(sequence, false);
}

void Scheduler::publish_end(ScheduledSequence& sequence) {
  publish(sequence);
  publish_checkpoint(sequence, true);
}

bool Scheduler::is_checkpoint(const ScheduledSequence& sequence, std::int64_t tokens) const {
  if (!settings_.copy_page || !pool_.is_caching() || tokens > cacheable_tokens(sequence)) return false;
  const std::int64_t known = std::max(sequence.kept_, tokens / settings_.block * settings_.block);
  return tokens - known >= kTokensSavedByCheckpoint;
}

std::optional<std::int64_t> Scheduler::next_checkpoint(const ScheduledSequence& sequence) const {
  const std::int64_t tokens = std::ssize(sequence.prompt) - kTokensAfterCheckpoint;
  return tokens > sequence.computed && is_checkpoint(sequence, tokens) ? std::optional(tokens) : std::nullopt;
}

// A sequence that goes on keeps its page, and a copy is published.
void Scheduler::publish_checkpoint(ScheduledSequence& sequence, bool has_ended) {
  if (!is_checkpoint(sequence, sequence.computed)) return;
  sequence.kept_ = sequence.computed;
  const std::span<const std::int32_t> tokens =
      tokens_of(sequence, sequence.published_ * settings_.block, sequence.computed);
  const std::optional<KvPagePool::Part> known = pool_.find_part(sequence.prefix_, tokens);
  if (known && known->tokens == std::ssize(tokens)) return;
  const std::int32_t own = sequence.pages[static_cast<std::size_t>(sequence.published_)];
  if (has_ended) return pool_.publish_part(sequence.prefix_, own, tokens);
  const std::optional<std::int32_t> copy = pool_.take();
  if (!copy) return;
  settings_.copy_page(own, *copy);
  pool_.publish_part(sequence.prefix_, *copy, tokens);
  pool_.release(*copy);
}

void Scheduler::restart() {
  while (!running_.empty()) wait_again(*running_.back());
  CHECK(pool_.forget_all(), "pages are in use though no sequence runs");
}

EngineStatistics Scheduler::statistics() const {
  EngineStatistics now = counts_;
  now.running = std::ssize(running_);
  now.waiting = std::ssize(waiting_);
  now.pages = pool_.page_count();
  now.pages_used = pool_.page_count() - pool_.free_count();
  return now;
}

}  // namespace weft
