#pragma once

// Runs requests on one loaded model. Several sequences share a step; schedule/scheduler.h decides which, and how many
// tokens of each. KV pages with the tokens that a request begins with are found in the prefix cache.

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine_statistics.h"
#include "engine/run/model_runner.h"
#include "engine/run/step_buffer.h"
#include "engine/sampling/logit_masks.h"
#include "engine/sampling/logprobs.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/stop_texts.h"
#include "engine/schedule/scheduler.h"
#include "engine/speculation/proposal_pace.h"
#include "engine/speculation/proposer.h"
#include "engine/speculation/speculation_pace.h"
#include "engine/speculation/speculative_config.h"
#include "io/detokenizer.h"
#include "io/embedding_head.h"
#include "io/tokenizer.h"

namespace weft {

enum class FinishReason : std::uint8_t { none, stop, length, failed };

// What the error of a failed request is about.
enum class FailureCause : std::uint8_t {
  answer,  // the numbers or masks of this request; the text names no file, so that the client may read it
  step,    // an exception, whose text may name files of this machine
  device,
};

// An event of a request in a step.
struct RequestEvent {
  int request = 0;
  int token = -1;    // the new token
  std::string text;  // text completed by it: whole characters, no part of a stop text
  FinishReason finished = FinishReason::none;
  int stop_text = -1;      // with `stop`: the index of the stop text that ended the answer, or
  int stop_id = -1;        // the token of SamplingParameters::stop_ids that did; neither for an end token
  std::string error = {};  // set with `failed`; there is no token then
  FailureCause cause = FailureCause::step;  // of the error
  std::int64_t cached_tokens = 0;           // tokens of the prompt that were found in the prefix cache
  // Of the token, with SamplingParameters::logprobs; and, in the event of the first token, of the prompt's tokens, with
  // SamplingParameters::prompt_logprobs. The prompt's first token has no log probability, and its rank is 0.
  std::optional<TokenLogprobs> logprobs = {};
  std::vector<TokenLogprobs> prompt_logprobs = {};
  // Of a request with a Pooling: the pooled hidden states, not normalized. There is no token.
  std::shared_ptr<const std::vector<float>> embedding = nullptr;
};

// With SamplingParameters::prompt_logprobs every row of the prompt is computed, whatever the prefix cache has.
struct NewRequest {
  std::shared_ptr<const std::vector<int>> prompt;
  SamplingParameters parameters;
  std::int64_t priority = 0;  // smaller is earlier; with --scheduling-policy priority
  std::string cache_salt;     // requests with different salts share nothing in the prefix cache
  // The LoRA adapter that computes the request, which keeps it to its end. Null: that of all requests.
  std::shared_ptr<const LoadedAdapter> adapter = nullptr;
  // The hidden states of the prompt after the last norm are pooled in this way, and no token is sampled.
  std::optional<Pooling> pooling = {};
  std::int64_t second_text = INT64_MAX;  // where the second text of a pair begins in the prompt
};

// Throws the error of a failed event: DeviceError or UserError.
[[noreturn]] void fail_by(const RequestEvent& event);

class Engine {
 public:
  // UserError for any problem with the checkpoint or the options. The tokenizer is read while the ModelRunner is made.
  // `watch` receives the laps of ModelRunner, tokenizer, which is the time that it was waited for, and pages.
  Engine(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models,
         Stopwatch* watch = nullptr);

  ModelRunner& runner() { return *runner_; }
  // UserError for a dummy checkpoint without a tokenizer: its requests consist of token ids, and their text is empty.
  const Tokenizer& tokenizer() const;
  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  // The tokens that end an answer, ascending.
  const std::vector<int>& end_tokens() const { return ends_; }
  const Context& context() const { return *context_; }
  // Sentences for the user about the model, and about the one that proposes tokens.
  const std::vector<std::string>& notes() const { return notes_; }
  std::int64_t max_model_len() const { return runner_->facts().config.context_length; }

  // KV pages, which all sequences share, and the tokens in each.
  std::int64_t page_count() const { return page_count_; }
  std::int64_t page_tokens() const { return runner_->facts().kv.block; }
  // Limits all sequences together to `pages` KV pages, which must suffice for each request alone. Empties the prefix
  // cache. Only while idle.
  void limit_pages(std::int64_t pages);

  // From now on prompts delay the sequences that decode by little: see schedule/prompt_pace.h.
  void pace_prompts();
  // From now on tokens are proposed only while that pays: see speculation/speculation_pace.h.
  void pace_proposals() { speculation_pace_.turn_on(); }

  // Queues a request. UserError when the prompt is empty, longer than the context, or holds an id outside the
  // vocabulary, and when prompt and answer may become longer than all KV pages.
  int add(NewRequest request);
  int add(std::vector<int> prompt, SamplingParameters parameters);
  // Runs one step for as many requests as fit, and returns its events, which are valid until the next step; none while
  // idle. When the model throws, all requests are unchanged; after other exceptions the requests of the step are to be
  // cancelled. It allocates nothing, except for text that exceeds the capacity of a std::string, for log probabilities,
  // and for constraints, whose masks are made when they are first needed. A step that breaks the device ends its own
  // requests as failed. The next step opens the device again and recomputes the other requests. DeviceError where the
  // device cannot be opened.
  std::span<const RequestEvent> step();
  bool is_idle() const { return requests_.empty(); }
  // The requests whose first rows were in the last step, and those that lost their pages in it.
  std::span<const FirstScheduled> first_scheduled() const { return first_scheduled_; }
  std::span<const int> preempted() const { return preempted_; }
  // Cancels a request and releases its pages; does nothing for a finished request. Not within a step.
  void cancel(int request);
  // The requests of the last step, over or not: those that an exception of it concerns.
  std::span<const int> requests_of_step() const { return step_requests_; }

  // Empties the prefix cache. Returns false, and does nothing, while sequences run.
  bool reset_prefix_cache() { return scheduler_.reset_prefix_cache(); }
  EngineStatistics statistics() const;

  // One request from start to end.
  struct Generation {
    std::vector<int> tokens;
    std::string text;
    FinishReason finished = FinishReason::none;
    std::int64_t cached_tokens = 0;                     // tokens of the prompt that were found in the prefix cache
    std::int64_t proposed_tokens = 0, kept_tokens = 0;  // of speculative decoding
    double prompt_seconds = 0;                          // until the first token
    double generation_seconds = 0;                      // for the others
  };
  Generation generate(const std::vector<int>& prompt, const SamplingParameters& parameters,
                      const std::function<void(const std::string&)>& on_text = {});

  // What follows the pooling in this checkpoint.
  EmbeddingHead embedding_head() const;
  // The pooled hidden states of one text from start to end, not normalized.
  std::vector<float> embed(const std::vector<int>& prompt, Pooling pooling);

  // Runs `ids` as one sequence and calls `visit(row, logits)` in order for every row of `rows` (positions in `ids`,
  // ascending).
  void score(const std::vector<int>& ids, const std::vector<int>& rows,
             const std::function<void(int row, std::span<const float> logits)>& visit);

 private:
  struct Request : ScheduledSequence {
    int id = 0;
    SamplingParameters parameters;
    std::optional<StreamingDetokenizer> detokenizer;  // nullopt without a tokenizer
    StopTexts stops;
    LogitMasks masks;
    ProposalPace pace;
    std::unique_ptr<Proposer::Kept> kept;        // for the proposer; null where it keeps nothing
    std::unique_ptr<TokenMask> constraint;       // null: any text may follow
    std::vector<TokenLogprobs> prompt_logprobs;  // until the event of the first token takes them
    std::shared_ptr<const LoadedAdapter> loaded_adapter;
    std::optional<Pooling> pooling;
    std::vector<double> pooled;  // sums of the hidden states so far

    std::string text_of(int token) { return detokenizer ? detokenizer->push(token) : ""; }
    std::string last_text() { return detokenizer ? detokenizer->finish() : ""; }
  };

  static Request& request_of(ScheduledSequence& sequence) { return static_cast<Request&>(sequence); }
  static const Request& request_of(const ScheduledSequence& sequence) { return static_cast<const Request&>(sequence); }
  void find_ends();
  void run_alone(NewRequest request, const std::function<void(const RequestEvent&)>& visit);
  std::function<void(std::int32_t from, std::int32_t to)> copy_of_pages() const;
  SchedulerSettings scheduler_settings() const;
  std::int64_t default_page_count() const;
  void check_generates() const;
  void check_request(const NewRequest& request) const;
  void reopen_device();
  void fail_chunks(std::span<const Chunk> chunks, const std::string& error);
  void make_proposer(const ModelRegistry& models);
  void propose();
  // The step of chunks_ took this time.
  void observe(double seconds);
  void schedule();
  // `first_hidden` is the chunk's first row in the step, and `first_row` its first row of logits.
  void finish_chunk(const Chunk& chunk, const Tensor& logits, std::int64_t first_row, std::int64_t first_hidden);
  // Adds the hidden states of a chunk to those of its request, which ends with the last of them.
  void pool(Request& request, const Chunk& chunk, std::int64_t first_hidden);
  // Samples the token after row `row` of the logits, and adds its event. Returns whether the request goes on.
  bool sample(Request& request, const Tensor& logits, std::int64_t row);
  // Ends a request whose last event was added.
  void end(Request& request);
  void fail(const Request& request, std::string error);
  Phase phase_of(const ScheduledSequence& sequence) const;
  bool run_phase(Phase phase);
  const Tensor& run(Phase phase, std::span<const Chunk> chunks, std::span<const std::int64_t> logit_rows);
  // Copies row `row` of the step's logits into logits_. Returns "", or the error where a logit is not a number.
  std::string take_logits(const Request& request, const Tensor& logits, std::int64_t row);
  // Adds the log probabilities of the prompt's tokens that follow the rows of this step, whose logits begin at
  // `first_row`. Returns "", or the error where a logit is not a number.
  std::string score_prompt(Request& request, const Tensor& logits, std::int64_t first_row);
  // Changes logits_ by what the request asks for before the penalties. Returns "", or the error where no token is left.
  std::string mask_logits(Request& request);
  RequestEvent advance(Request& request, std::span<const float> logits);
  void add_text(Request& request, RequestEvent& event);
  bool ends_text(int token) const { return std::find(ends_.begin(), ends_.end(), token) != ends_.end(); }

  std::shared_ptr<Context> context_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null for a dummy checkpoint without one
  std::vector<int> ends_;                 // tokens that end an answer
  std::vector<std::string> notes_;
  std::int64_t page_count_ = 0;
  Scheduler scheduler_;
  bool is_paced_ = false;
  SpeculativeConfig speculation_;
  std::unique_ptr<Proposer> proposer_;  // null: nothing is proposed
  SpeculationPace speculation_pace_;
  std::vector<Proposer::Sequence> proposed_for_;  // of the current step
  std::int64_t proposed_tokens_ = 0, kept_tokens_ = 0;
  std::unordered_map<int, std::unique_ptr<Request>> requests_;
  int next_request_ = 0;

  // State of the current step. The memory is reused by the next step.
  bool has_prompts_ = false;  // whether it has rows that follow no sampled token
  std::span<const Chunk> chunks_;
  std::array<std::vector<Chunk>, 2> phase_chunks_;  // by Phase
  std::vector<int> step_requests_;                  // their ids
  std::vector<std::int64_t> logit_rows_;
  StepBuffer step_;
  std::vector<float> logits_;      // one row
  std::vector<float> raw_logits_;  // the same row before masks, for log probabilities
  Sampler sampler_;
  std::vector<RequestEvent> events_;
  std::vector<std::vector<int>> spare_outputs_;  // memory for the answers of running requests
  std::vector<FirstScheduled> first_scheduled_;
  std::vector<int> preempted_;
};

}  // namespace weft
