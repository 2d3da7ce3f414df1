#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

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
  find_ends();
  limit_pages(per_sequence * std::min(context_->options.max_num_seqs, sequences));
  const StepLimits most = runner_->step_limits();
  const auto sequences_of_step = static_cast<std::size_t>(most.sequences);
  chunks_.reserve(sequences_of_step);
  logit_rows_.reserve(static_cast<std::size_t>(runner_->max_logit_rows()));
  events_.reserve(sequences_of_step);
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
  const auto check = [&](const char* name, int id) {
    USER_CHECK(id >= 0 && id < runner_->vocabulary_size(), "[{}] a token must be in [0, {}), but is {}", name,
               runner_->vocabulary_size(), id);
  };
  for (const int id : prompt) check("prompt", id);
  for (const int id : parameters.stop_ids) check("stop_ids", id);
  for (const int id : parameters.allowed_ids.value_or(std::vector<int>())) check("allowed_ids", id);
  for (const std::vector<int>& word : parameters.bad_words)
    for (const int id : word) check("bad_words", id);
  for (const TokenBias& bias : parameters.logit_bias) check("logit_bias", bias.id);
  auto request = std::make_unique<Request>();
  request->id = next_request_++;
  // Reserves the greatest length that the output can reach.
  const std::int64_t most = std::min(parameters.max_tokens, max_model_len() - std::ssize(prompt));
  request->output.reserve(static_cast<std::size_t>(most));
  request->pages.reserve(static_cast<std::size_t>(runner_->step_limits().blocks));
  if (parameters.prompt_logprobs) request->prompt_logprobs.push_back({.chosen = {.id = prompt.front()}});
  request->prompt = std::move(prompt);
  request->stops = StopTexts(parameters.stop, parameters.includes_stop);
  request->masks = LogitMasks(parameters, ends_);
  if (tokenizer_ != nullptr) {
    request->detokenizer.emplace(*tokenizer_,
                                 DecodeOptions{.skip_special = parameters.skips_special,
                                               .spaces_between_special = parameters.spaces_between_special});
    request->detokenizer->continue_after(request->prompt);
  }
  request->parameters = std::move(parameters);
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
  std::int64_t left = runner_->max_tokens(), logits_left = runner_->max_logit_rows();
  const auto sequences = static_cast<std::size_t>(context_->options.max_num_seqs);
  auto add_all = [&](bool generating) {
    for (auto& request : requests_) {
      const std::int64_t missing = request->token_count() - request->computed;
      const bool is_generating = missing == 1 && request->computed > 0;
      if (is_generating != generating || left == 0 || chunks_.size() == sequences) continue;
      const std::int64_t before_logits = std::max<std::int64_t>(request->first_logit_row() - request->computed, 0);
      const std::int64_t rows = std::min({missing, left, before_logits + logits_left});
      if (rows == 0) continue;
      if (!reserve_pages(*request, request->computed + rows)) continue;
      chunks_.push_back({request.get(), rows, std::max<std::int64_t>(rows - before_logits, 0)});
      left -= rows;
      logits_left -= chunks_.back().logit_rows;
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

std::string Engine::take_logits(const Request& request, const Tensor& logits, std::int64_t row) {
  runner_->copy_logits(logits, row, logits_);
  if (std::none_of(logits_.begin(), logits_.end(), [](float logit) { return std::isnan(logit); })) return "";
  return runner_->describe_nan(step_.input(), row, request.pages, request.computed);
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
    for (std::int64_t row = end - chunk.logit_rows; row < end; ++row) logit_rows_.push_back(row);
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
  for (const auto& [chunk_request, rows, logit_rows] : chunks_) {
    Request* const request = chunk_request;
    const std::int64_t first_row = std::exchange(next_row, next_row + logit_rows);
    std::string error = runner_->describe_overflow(request->pages, request->computed - rows, request->computed);
    if (error.empty()) error = score_prompt(*request, logits, first_row);
    const bool is_whole = request->computed == request->token_count();  // otherwise more of the prompt follows
    if (error.empty() && !is_whole) continue;
    if (error.empty()) error = take_logits(*request, logits, next_row - 1);
    if (error.empty()) error = mask_logits(*request);
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
