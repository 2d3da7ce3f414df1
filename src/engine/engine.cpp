#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"

namespace weft {
namespace {

// KV pages are allocated for this number of sequences. The host's memory is committed when it is touched, a device's at
// once.
constexpr std::int64_t kSequencesWithFullContext = 8, kSequencesOnDevice = 1;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void fail_by(const RequestEvent& event) {
  if (event.is_of_device) fail_device("{}", event.error);
  fail_user("{}", event.error);
}

Engine::Engine(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models, Stopwatch* watch)
    : context_(std::move(context)) {
  Stopwatch unread;
  Stopwatch& laps = watch == nullptr ? unread : *watch;
  models.find(checkpoint.architecture(), checkpoint.path());  // reports an unknown model before its tokenizer's errors
  if (!checkpoint.is_dummy() || checkpoint.has_vocabulary())
    tokenizer_ = std::make_unique<Tokenizer>(checkpoint.vocabulary());
  laps.lap("tokenizer");
  if (tokenizer_ != nullptr) log_unknown_keys(context_->log, checkpoint.path(), tokenizer_->vocabulary().unknown_keys);
  runner_ = std::make_unique<ModelRunner>(context_, std::move(checkpoint), models, &laps);
  const std::int64_t block = runner_->facts().kv.block, per_sequence = (max_model_len() + block - 1) / block;
  const std::int64_t sequences = context_->stream_device == nullptr ? kSequencesWithFullContext : kSequencesOnDevice;
  limit_pages(per_sequence * std::min(context_->options.max_num_seqs, sequences));
  const StepLimits most = runner_->step_limits();
  const auto sequences_of_step = static_cast<std::size_t>(most.sequences);
  chunks_.reserve(sequences_of_step);
  logit_rows_.reserve(sequences_of_step);
  events_.reserve(sequences_of_step);
  step_ = StepBuffer(most);
  logits_.resize(static_cast<std::size_t>(runner_->vocabulary_size()));
  sampler_ = Sampler(logits_.size(), static_cast<std::size_t>(max_model_len()));
  runner_->set_ready();
  laps.lap("pages");
}

const Tokenizer& Engine::tokenizer() const {
  USER_CHECK(tokenizer_ != nullptr, "[{}] wanted a tokenizer to read and write text, but the folder has none",
             runner_->checkpoint().path());
  return *tokenizer_;
}

void Engine::limit_pages(std::int64_t pages) {
  CHECK(is_idle(), "KV pages are made anew only while no request runs");
  runner_->allocate_pages(pages);
  page_count_ = pages;
  pool_ = KvPagePool(pages);
}

int Engine::add(std::vector<int> prompt, SamplingParameters parameters) {
  parameters.check();
  USER_CHECK(!prompt.empty(), "[prompt] must hold at least one token, but is empty");
  USER_CHECK(static_cast<std::int64_t>(prompt.size()) < max_model_len(),
             "[prompt] must be shorter than the context of {} tokens, but has {}", max_model_len(), prompt.size());
  for (int id : prompt)
    USER_CHECK(id >= 0 && id < runner_->vocabulary_size(), "[prompt] a token must be in [0, {}), but is {}",
               runner_->vocabulary_size(), id);
  for (int id : parameters.stop_ids)
    USER_CHECK(id >= 0 && id < runner_->vocabulary_size(), "[stop_ids] a token must be in [0, {}), but is {}",
               runner_->vocabulary_size(), id);
  auto request = std::make_unique<Request>();
  request->id = next_request_++;
  // Reserves the greatest length that the output can reach.
  const std::int64_t most = std::min(parameters.max_tokens, max_model_len() - std::ssize(prompt));
  request->output.reserve(static_cast<std::size_t>(most));
  request->pages.reserve(static_cast<std::size_t>(runner_->step_limits().blocks));
  request->prompt = std::move(prompt);
  request->stops = StopTexts(parameters.stop);
  request->parameters = std::move(parameters);
  if (tokenizer_ != nullptr) {
    request->detokenizer.emplace(
        *tokenizer_, DecodeOptions{.skip_special = true, .shown_special = request->parameters.shown_special});
    request->detokenizer->continue_after(request->prompt);
  }
  requests_.push_back(std::move(request));
  return requests_.back()->id;
}

bool Engine::reserve_pages(Request& request, std::int64_t tokens) {
  const std::int64_t block = runner_->facts().kv.block;
  while (static_cast<std::int64_t>(request.pages.size()) * block < tokens) {
    std::optional<std::int32_t> page = pool_.take();
    if (!page) {
      if (requests_.empty()) return false;
      // The youngest request frees its pages, unless it is the one that needs them.
      Request& youngest = *requests_.back();
      if (&youngest == &request || youngest.pages.empty()) return false;
      pool_.give_back(youngest.pages);
      youngest.computed = 0;
      continue;
    }
    request.pages.push_back(*page);
  }
  return true;
}

void Engine::schedule() {
  chunks_.clear();
  std::int64_t left = runner_->max_tokens();
  const auto sequences = static_cast<std::size_t>(context_->options.max_num_seqs);
  auto add_all = [&](bool generating) {
    for (auto& request : requests_) {
      const std::int64_t missing = request->token_count() - request->computed;
      const bool is_generating = missing == 1 && request->computed > 0;
      if (is_generating != generating || left == 0 || chunks_.size() == sequences) continue;
      const std::int64_t rows = std::min(missing, left);
      if (!reserve_pages(*request, request->computed + rows)) continue;
      chunks_.push_back({request.get(), rows});
      left -= rows;
    }
  };
  add_all(true);
  add_all(false);
  // A sequence that lost its pages after it was chosen waits for a later step.
  std::erase_if(chunks_, [](const Chunk& chunk) { return chunk.request->pages.empty(); });
}

const Tensor& Engine::run(std::span<const Chunk> chunks, std::span<const std::int64_t> logit_rows) {
  const std::int64_t block = runner_->facts().kv.block;
  std::size_t widest = 0;
  for (const Chunk& chunk : chunks) widest = std::max(widest, chunk.request->pages.size());
  step_.begin(static_cast<std::int64_t>(widest));
  for (const Chunk& chunk : chunks) {
    const Request& request = *chunk.request;
    const std::int64_t end = request.computed + chunk.rows;
    for (std::int64_t at = request.computed; at < end; ++at)
      step_.add_row(request.token(at), at, request.pages[static_cast<std::size_t>(at / block)] * block + at % block);
    step_.add_sequence(end, request.pages);
  }
  for (const std::int64_t row : logit_rows) step_.want_logits(row);
  const Tensor& logits = runner_->step(step_.input());
  for (const Chunk& chunk : chunks) chunk.request->computed += chunk.rows;
  return logits;
}

// Ids beyond the vocabulary, which a model with a padded embedding can produce, have no text.
bool Engine::is_special(int token) const {
  return tokenizer_ != nullptr && token < tokenizer_->token_count() && tokenizer_->is_special(token);
}

bool Engine::ends_text(int token) const {
  const std::vector<std::int64_t>& config = runner_->facts().config.eos_token_ids;
  if (std::find(config.begin(), config.end(), token) != config.end()) return true;
  if (tokenizer_ == nullptr) return false;
  const std::vector<int>& ends = tokenizer_->vocabulary().end_of_generation;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

std::string Engine::take_logits(const Request& request, const Tensor& logits, std::int64_t row) {
  runner_->copy_logits(logits, row, logits_);
  if (std::none_of(logits_.begin(), logits_.end(), [](float logit) { return std::isnan(logit); })) return "";
  return runner_->describe_nan(step_.input(), row, request.pages, request.computed);
}

RequestEvent Engine::advance(Request& request, std::span<const float> logits) {
  RequestEvent event{.request = request.id};
  event.token = sampler_.sample(logits, request.parameters, request.prompt, request.output);
  request.output.push_back(event.token);
  if (ends_text(event.token) && !request.parameters.ignore_end) {
    event.finished = FinishReason::stop;
    event.text = request.stops.finish() + request.last_text();
    return event;
  }
  StopTexts& stops = request.stops;
  const std::vector<int>& ids = request.parameters.stop_ids;
  if (std::find(ids.begin(), ids.end(), event.token) != ids.end()) {
    event.finished = FinishReason::stop;
    event.stop_id = event.token;
    event.text = stops.finish() + request.last_text();
    return event;
  }
  const std::vector<int>& shown = request.parameters.shown_special;
  const bool is_hidden = is_special(event.token) && std::find(shown.begin(), shown.end(), event.token) == shown.end();
  event.text =
      is_hidden ? stops.push_special(tokenizer_->token_bytes(event.token)) : stops.push(request.text_of(event.token));
  if (stops.has_stopped()) {
    event.finished = FinishReason::stop;
    event.stop_text = stops.stopped_by();
  } else if (static_cast<std::int64_t>(request.output.size()) >= request.parameters.max_tokens ||
             request.token_count() >= max_model_len()) {
    event.finished = FinishReason::length;
    event.text += stops.push(request.last_text());
    event.text += stops.finish();
  }
  return event;
}

// The keys and values are lost with the device, so they are computed again.
void Engine::reopen_device() {
  if (!runner_->is_broken()) return;
  for (auto& request : requests_) {
    pool_.give_back(request->pages);
    request->computed = 0;
  }
  runner_->reopen();
}

void Engine::fail_chunks(const std::string& error) {
  for (const Chunk& chunk : chunks_) {
    events_.push_back(
        {.request = chunk.request->id, .finished = FinishReason::failed, .error = error, .is_of_device = true});
    cancel(events_.back().request);
  }
}

std::span<const RequestEvent> Engine::step() {
  events_.clear();
  reopen_device();
  schedule();
  CHECK(!chunks_.empty() || requests_.empty(), "no request fits into the KV pages");
  if (chunks_.empty()) return {};
  logit_rows_.clear();
  std::int64_t end = 0;
  for (const Chunk& chunk : chunks_) {
    end += chunk.rows;
    const bool is_whole = chunk.request->computed + chunk.rows == chunk.request->token_count();
    if (is_whole) logit_rows_.push_back(end - 1);  // otherwise more of the prompt follows
  }
  const Tensor* ran = nullptr;
  try {
    ran = &run(chunks_, logit_rows_);
  } catch (const DeviceError& error) {
    if (!runner_->is_broken()) throw;
    fail_chunks(error.what());
    return events_;
  }
  const Tensor& logits = *ran;
  std::int64_t next_row = 0;
  for (const auto& [request, rows] : chunks_) {
    std::string error = runner_->describe_overflow(request->pages, request->computed - rows, request->computed);
    const bool has_logits = request->computed == request->token_count();
    if (error.empty() && !has_logits) continue;
    if (error.empty()) error = take_logits(*request, logits, next_row);
    next_row += has_logits ? 1 : 0;
    if (error.empty()) {
      events_.push_back(advance(*request, logits_));
      if (events_.back().finished != FinishReason::none)
        error = runner_->describe_overflow_on_device(request->pages, request->computed);
      if (!error.empty()) {
        events_.back().finished = FinishReason::failed;
        events_.back().error = std::move(error);
      }
    } else {
      events_.push_back({.request = request->id, .finished = FinishReason::failed, .error = std::move(error)});
    }
    if (events_.back().finished == FinishReason::none) continue;
    pool_.give_back(request->pages);
    std::erase_if(requests_, [&](const auto& known) { return known.get() == request; });
  }
  return events_;
}

void Engine::cancel(int request) {
  const auto found =
      std::find_if(requests_.begin(), requests_.end(), [&](const auto& known) { return known->id == request; });
  if (found == requests_.end()) return;
  pool_.give_back((*found)->pages);
  requests_.erase(found);
}

Engine::Generation Engine::generate(const std::vector<int>& prompt, const SamplingParameters& parameters,
                                    const std::function<void(const std::string&)>& on_text) {
  CHECK(is_idle(), "generate runs one request alone");
  Generation result;
  struct Added {
    Engine& engine;
    int id;
    ~Added() { engine.cancel(id); }  // does nothing if the request is finished
  } const added{*this, add(prompt, parameters)};
  auto start = std::chrono::steady_clock::now();
  while (!is_idle()) {
    for (const RequestEvent& event : step()) {
      if (event.finished == FinishReason::failed) fail_by(event);
      if (result.tokens.empty()) {
        result.prompt_seconds = seconds_since(start);
        start = std::chrono::steady_clock::now();
      }
      result.tokens.push_back(event.token);
      result.text += event.text;
      result.finished = event.finished;
      if (on_text && !event.text.empty()) on_text(event.text);
    }
  }
  result.generation_seconds = seconds_since(start);
  return result;
}

void Engine::score(const std::vector<int>& ids, const std::vector<int>& rows,
                   const std::function<void(int row, std::span<const float> logits)>& visit) {
  CHECK(is_idle(), "score runs one sequence alone");
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
    ~Lent() { pool.give_back(pages); }
  } const lent{pool_, request.pages};
  request.prompt = ids;
  CHECK(reserve_pages(request, request.token_count()), "the KV pages hold less than one sequence");
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
    const Tensor& logits = run({&chunk, 1}, logit_rows);
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
