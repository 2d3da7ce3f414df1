#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <utility>

#include "base/available_memory.h"
#include "base/error.h"
#include "engine/run/step_of_chunks.h"
#include "engine/schedule/kv_sizing.h"
#include "engine/speculation/draft_model.h"
#include "engine/speculation/ngram_proposer.h"

namespace weft {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void fail_by(const RequestEvent& event) {
  if (event.cause == FailureCause::device) fail_device("{}", event.error);
  fail_user("{}", event.error);
}

Engine::Engine(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models, Stopwatch* watch)
    : context_(std::move(context)), speculation_(speculative_config(context_->options)) {
  Stopwatch unread;
  Stopwatch& laps = watch == nullptr ? unread : *watch;
  const ModelDefinition& definition =
      models.find(checkpoint);  // reports an unknown model before its tokenizer's errors
  USER_CHECK(speculation_.num_speculative_tokens == 0 || !checkpoint.config(definition.facts).recurrent,
             "[--speculative-config] {} has recurrent layers, whose states cannot go back to an earlier token when a "
             "proposal is refused",
             checkpoint.path());
  // Read meanwhile on one more thread, or on this one later if the system gives none: of a small model it takes half as
  // long as the weights. std::async() may need the function twice, so it must not be a temporary that is moved from.
  const auto read_tokenizer = [checkpoint] { return std::make_unique<Tokenizer>(checkpoint.vocabulary()); };
  std::future<std::unique_ptr<Tokenizer>> tokenizer;
  if (!checkpoint.is_dummy() || checkpoint.has_vocabulary()) tokenizer = std::async(read_tokenizer);
  runner_ = std::make_unique<ModelRunner>(context_, std::move(checkpoint), models, &laps);
  if (tokenizer.valid()) {
    tokenizer_ = tokenizer.get();
    log_unknown_keys(context_->log, runner_->checkpoint().path(), tokenizer_->vocabulary().unknown_keys);
  }
  laps.lap("tokenizer");
  find_ends();
  limit_pages(default_page_count());
  notes_ = runner_->notes();
  make_proposer(models);
  const StepLimits most = runner_->step_limits();
  const auto sequences_of_step = static_cast<std::size_t>(most.sequences);
  step_requests_.reserve(sequences_of_step);
  for (std::vector<Chunk>& chunks : phase_chunks_) chunks.reserve(sequences_of_step);
  logit_rows_.reserve(static_cast<std::size_t>(runner_->max_logit_rows()));
  events_.reserve(sequences_of_step * static_cast<std::size_t>(1 + speculation_.num_speculative_tokens));
  spare_outputs_.resize(sequences_of_step);
  for (auto& memory : spare_outputs_) memory.reserve(static_cast<std::size_t>(max_model_len()));
  first_scheduled_.reserve(sequences_of_step);
  preempted_.reserve(sequences_of_step);
  step_ = StepBuffer(most);
  logits_.resize(static_cast<std::size_t>(runner_->vocabulary_size()));
  sampler_ = Sampler(logits_.size(), static_cast<std::size_t>(max_model_len()));
  runner_->set_ready();
  laps.lap("pages");
}

void Engine::find_ends() {
  for (const std::int64_t id : runner_->facts().config.eos_token_ids)
    if (id >= 0 && id < runner_->vocabulary_size()) ends_.push_back(static_cast<int>(id));
  if (tokenizer_ == nullptr) return;
  for (const int id : tokenizer_->vocabulary().end_of_generation)
    if (id < runner_->vocabulary_size() && !ends_text(id)) ends_.push_back(id);
  std::sort(ends_.begin(), ends_.end());
}

const Tokenizer& Engine::tokenizer() const {
  USER_CHECK(tokenizer_ != nullptr, "[{}] wanted a tokenizer to read and write text, but the folder has none",
             runner_->checkpoint().path());
  return *tokenizer_;
}

std::int64_t Engine::default_page_count() const {
  return kv_page_count(context_->options, {.page_bytes = runner_->kv_bytes_per_page(),
                                           .page_tokens = page_tokens(),
                                           .context = max_model_len(),
                                           .available_bytes = available_memory_bytes(),
                                           .is_on_device = context_->stream_device != nullptr});
}

// A page with states serves only as many tokens as were computed. Keys and values serve any of their first tokens, so
// blocks of them alone are short, and need no copies.
std::function<void(std::int32_t, std::int32_t)> Engine::copy_of_pages() const {
  if (!runner_->facts().config.recurrent || context_->stream_device != nullptr) return nullptr;
  return [runner = runner_.get()](std::int32_t from, std::int32_t to) { runner->copy_page(from, to); };
}

SchedulerSettings Engine::scheduler_settings() const {
  const Options& options = context_->options;
  const StepLimits most = runner_->step_limits();
  const bool is_causal = runner_->facts().config.is_causal;
  return {.rows = most.rows,
          .logit_rows = runner_->max_logit_rows(),
          .sequences = most.sequences,
          .block = page_tokens(),
          .longest = max_model_len(),
          .long_prefill_threshold = options.long_prefill_token_threshold,
          .has_priorities = options.scheduling_policy == "priority",
          .caches_prefixes = options.enable_prefix_caching && is_causal,
          .has_phases = runner_->has_phases(),
          .has_whole_prompts = !is_causal,
          .copy_page = copy_of_pages()};
}

void Engine::limit_pages(std::int64_t pages) {
  CHECK(is_idle(), "KV pages are made anew only while no request runs");
  runner_->allocate_pages(pages);
  page_count_ = pages;
  scheduler_ = Scheduler(scheduler_settings(), pages);
  if (is_paced_) scheduler_.pace_prompts();
}

void Engine::pace_prompts() {
  is_paced_ = true;
  scheduler_.pace_prompts();
}

// Once there are KV pages.
void Engine::make_proposer(const ModelRegistry& models) {
  if (speculation_.num_speculative_tokens == 0) return;
  proposed_for_.reserve(static_cast<std::size_t>(runner_->step_limits().sequences));
  if (speculation_.model.empty()) {
    proposer_ = std::make_unique<NgramProposer>(speculation_);
    return;
  }
  auto model = std::make_unique<DraftModel>(
      speculation_, DraftTarget{.options = context_->options,
                                .models = models,
                                .runner = *runner_,
                                .vocabulary = tokenizer_ == nullptr ? nullptr : &tokenizer_->vocabulary(),
                                .kv_tokens = page_count_ * page_tokens()});
  notes_.insert(notes_.end(), model->notes().begin(), model->notes().end());
  proposer_ = std::move(model);
}

// For the sequences that decode. One more token than the draft has can follow in a step.
void Engine::propose() {
  proposed_for_.clear();
  std::int64_t decoding = 0;
  for (const auto& [id, request] : requests_) {
    request->draft.clear();
    if (request->computed == 0 || request->computed + 1 != request->token_count()) continue;
    ++decoding;
    if (!request->pace.is_due()) continue;
    const std::int64_t of_answer = request->parameters.max_tokens - std::ssize(request->output),
                       of_context = max_model_len() - request->token_count();
    const std::int64_t most = std::min({of_answer - 1, of_context - 1, speculation_.num_speculative_tokens});
    if (most > 0) proposed_for_.push_back({.sequence = request.get(), .kept = request->kept.get(), .most = most});
  }
  if (speculation_pace_.begin(decoding) && !proposed_for_.empty()) proposer_->propose(proposed_for_);
}

EngineStatistics Engine::statistics() const {
  EngineStatistics statistics = scheduler_.statistics();
  statistics.proposed_tokens = proposed_tokens_;
  statistics.kept_tokens = kept_tokens_;
  return statistics;
}

void Engine::schedule() {
  if (proposer_ != nullptr) propose();
  chunks_ = scheduler_.schedule();
  CHECK(!chunks_.empty() || is_idle(), "no sequence fits into the KV pages");
  first_scheduled_.clear();
  for (const ScheduledSequence* sequence : scheduler_.first_scheduled())
    first_scheduled_.push_back({request_of(*sequence).id, sequence->cached_tokens});
  has_prompts_ = false;
  preempted_.clear();
  for (const ScheduledSequence* sequence : scheduler_.preempted()) preempted_.push_back(request_of(*sequence).id);
  for (const Chunk& chunk : chunks_) {
    step_requests_.push_back(request_of(*chunk.sequence).id);
    has_prompts_ = has_prompts_ || chunk.rows - chunk.draft_rows > 1 || chunk.sequence->output.empty();
    std::vector<int>& output = chunk.sequence->output;
    if (output.capacity() > 0 || spare_outputs_.empty()) continue;
    output = std::move(spare_outputs_.back());
    spare_outputs_.pop_back();
  }
}

// The scheduler cuts chunks at the end of the prompt where phases have graphs of their own.
Phase Engine::phase_of(const ScheduledSequence& sequence) const {
  const bool is_decoded = runner_->has_phases() && sequence.computed >= std::ssize(sequence.prompt);
  return is_decoded ? Phase::decode : Phase::prompt;
}

const Tensor& Engine::run(Phase phase, std::span<const Chunk> chunks, std::span<const std::int64_t> logit_rows) {
  fill_step(step_, chunks, logit_rows, page_tokens(), phase);
  const Tensor& logits = runner_->step(step_.input());
  for (const Chunk& chunk : chunks) chunk.sequence->computed += chunk.rows;
  return logits;
}

std::string Engine::take_logits(const Request& request, const Tensor& logits, std::int64_t row) {
  runner_->copy_row(logits, row, logits_);
  if (std::none_of(logits_.begin(), logits_.end(), [](float logit) { return std::isnan(logit); })) return "";
  return runner_->describe_nan(step_.input(), row, request.pages, request.computed);
}

// The keys and values are lost with the device, so they are computed again.
void Engine::reopen_device() {
  if (!runner_->is_broken()) return;
  scheduler_.restart();
  runner_->reopen();
}

void Engine::fail_chunks(std::span<const Chunk> chunks, const std::string& error) {
  for (const Chunk& chunk : chunks) {
    events_.push_back({.request = request_of(*chunk.sequence).id,
                       .finished = FinishReason::failed,
                       .error = error,
                       .cause = FailureCause::device});
    cancel(events_.back().request);
  }
}

std::span<const RequestEvent> Engine::step() {
  events_.clear();
  step_requests_.clear();
  reopen_device();
  const auto start = std::chrono::steady_clock::now();
  schedule();
  if (chunks_.empty()) return {};
  // The phase of a chunk is known before any of them is run.
  for (std::vector<Chunk>& chunks : phase_chunks_) chunks.clear();
  for (const Chunk& chunk : chunks_)
    phase_chunks_[static_cast<std::size_t>(phase_of(*chunk.sequence))].push_back(chunk);
  for (const Phase phase : {Phase::prompt, Phase::decode})
    if (!run_phase(phase)) return events_;
  observe(seconds_since(start));
  return events_;
}

void Engine::observe(double seconds) {
  scheduler_.observe(seconds);
  if (!has_prompts_) speculation_pace_.observe(seconds, std::ssize(events_));
}

// Runs and finishes the chunks of a phase; without phases those of both. Returns false if the device was lost.
bool Engine::run_phase(Phase phase) {
  const std::vector<Chunk>& chunks = phase_chunks_[static_cast<std::size_t>(phase)];
  if (chunks.empty()) return true;
  logit_rows_.clear();
  add_logit_rows(chunks, logit_rows_);
  const Tensor* logits = nullptr;
  try {
    logits = &run(phase, chunks, logit_rows_);
  } catch (const DeviceError& error) {
    if (!runner_->is_broken()) throw;
    fail_chunks(chunks, error.what());
    return false;
  }
  std::int64_t first_row = 0, first_hidden = 0;
  for (const Chunk& chunk : chunks)
    finish_chunk(chunk, *logits, std::exchange(first_row, first_row + chunk.logit_rows),
                 std::exchange(first_hidden, first_hidden + chunk.rows));
  return true;
}

void Engine::cancel(int request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  Request& ended = *found->second;
  scheduler_.remove(ended);
  if (ended.output.capacity() > 0 && spare_outputs_.size() < spare_outputs_.capacity()) {
    ended.output.clear();
    spare_outputs_.push_back(std::move(ended.output));
  }
  requests_.erase(found);
}

// Calls visit(event) with each event of the request.
void Engine::run_alone(NewRequest request, const std::function<void(const RequestEvent&)>& visit) {
  CHECK(is_idle(), "other requests run");
  struct Added {
    Engine& engine;
    int id;
    ~Added() { engine.cancel(id); }  // does nothing if the request is finished
  } const added{*this, add(std::move(request))};
  while (!is_idle()) {
    for (const RequestEvent& event : step()) {
      if (event.finished == FinishReason::failed) fail_by(event);
      visit(event);
    }
  }
}

Engine::Generation Engine::generate(const std::vector<int>& prompt, const SamplingParameters& parameters,
                                    const std::function<void(const std::string&)>& on_text) {
  Generation result;
  const std::int64_t proposed = proposed_tokens_, kept = kept_tokens_;
  auto start = std::chrono::steady_clock::now();
  run_alone({.prompt = std::make_shared<const std::vector<int>>(prompt), .parameters = parameters},
            [&](const RequestEvent& event) {
              if (result.tokens.empty()) {
                result.prompt_seconds = seconds_since(start);
                start = std::chrono::steady_clock::now();
              }
              result.cached_tokens = event.cached_tokens;
              result.tokens.push_back(event.token);
              result.text += event.text;
              result.finished = event.finished;
              if (on_text && !event.text.empty()) on_text(event.text);
            });
  result.generation_seconds = seconds_since(start);
  result.proposed_tokens = proposed_tokens_ - proposed;
  result.kept_tokens = kept_tokens_ - kept;
  return result;
}

void Engine::score(const std::vector<int>& ids, const std::vector<int>& rows,
                   const std::function<void(int row, std::span<const float> logits)>& visit) {
  CHECK(is_idle(), "score runs one sequence alone");
  check_generates();
  USER_CHECK(!ids.empty() && static_cast<std::int64_t>(ids.size()) <= max_model_len(),
             "[ids] must be 1 to {} tokens, but are {}", max_model_len(), ids.size());
  for (int id : ids)
    USER_CHECK(id >= 0 && id < runner_->vocabulary_size(), "[ids] a token must be in [0, {}), but is {}",
               runner_->vocabulary_size(), id);
  reopen_device();
  const std::int64_t logit_rows_at_once = runner_->max_logit_rows();
  Request request;
  struct Lent {
    KvPagePool& pool;
    std::vector<std::int32_t>& pages;
    ~Lent() { pool.release(pages); }
  } const lent{scheduler_.pool(), request.pages};
  request.prompt = ids;
  while (std::ssize(request.pages) * page_tokens() < request.token_count()) {
    const std::optional<std::int32_t> page = lent.pool.take();
    CHECK(page.has_value(), "the KV pages hold less than one sequence");
    request.pages.push_back(*page);
  }
  std::size_t next = 0;
  while (request.computed < request.token_count()) {
    const std::int64_t begin = request.computed;
    const bool wanted = next < rows.size() && rows[next] < begin + runner_->max_tokens();
    const std::int64_t most =
        wanted && rows[next] < begin + logit_rows_at_once ? logit_rows_at_once : runner_->max_tokens();
    std::int64_t count = std::min({request.token_count() - begin, most, runner_->max_tokens()});
    if (wanted && rows[next] >= begin + logit_rows_at_once) count = std::min<std::int64_t>(count, rows[next] - begin);
    std::vector<std::int64_t> logit_rows;
    for (std::size_t i = next; i < rows.size() && rows[i] < begin + count; ++i) logit_rows.push_back(rows[i] - begin);
    const Chunk chunk{&request, count};
    const Tensor& logits = run(Phase::prompt, {&chunk, 1}, logit_rows);
    const std::string overflow = runner_->describe_overflow(request.pages, begin, begin + count);
    USER_CHECK(overflow.empty(), "{}", overflow);
    for (std::size_t i = 0; i < logit_rows.size(); ++i) {
      const std::string error = take_logits(request, logits, static_cast<std::int64_t>(i));
      USER_CHECK(error.empty(), "{}", error);
      visit(rows[next++], logits_);
    }
  }
  const std::string overflow = runner_->describe_overflow_on_device(request.pages, request.computed);
  USER_CHECK(overflow.empty(), "{}", overflow);
}

}  // namespace weft
