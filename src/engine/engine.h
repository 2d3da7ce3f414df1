#pragma once

// Runs requests on one loaded model. Several sequences share a step: sequences that generate are first, then prompts in
// order of arrival, cut into chunks that fit --max-num-batched-tokens. Sequences take KV pages as they grow. When no
// page is free, the youngest sequence releases its pages and starts over later.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/kv_page_pool.h"
#include "engine/run/model_runner.h"
#include "engine/run/step_buffer.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/stop_texts.h"
#include "io/detokenizer.h"
#include "io/tokenizer.h"

namespace weft {

enum class FinishReason : std::uint8_t { none, stop, length, failed };

// An event of a request in a step.
struct RequestEvent {
  int request = 0;
  int token = -1;    // the new token
  std::string text;  // text completed by it: whole characters, no part of a stop text
  FinishReason finished = FinishReason::none;
  int stop_text = -1;         // with `stop`: the index of the stop text that ended the answer, or
  int stop_id = -1;           // the token of SamplingParameters::stop_ids that did; neither for an end token
  std::string error = {};     // set with `failed`; there is no token then
  bool is_of_device = false;  // whether the device, and not the model, caused the error
};

// Throws the error of a failed event: DeviceError or UserError.
[[noreturn]] void fail_by(const RequestEvent& event);

class Engine {
 public:
  // UserError for any problem with the checkpoint or the options. `watch` receives the laps tokenizer, those of
  // ModelRunner, and pages.
  Engine(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models,
         Stopwatch* watch = nullptr);

  ModelRunner& runner() { return *runner_; }
  // UserError for a dummy checkpoint without a tokenizer: its requests consist of token ids, and their text is empty.
  const Tokenizer& tokenizer() const;
  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  // The tokens that end an answer, ascending.
  std::vector<int> end_tokens() const;
  const Context& context() const { return *context_; }
  std::int64_t max_model_len() const { return runner_->facts().config.context_length; }

  // KV pages, which all sequences share, and the tokens in each.
  std::int64_t page_count() const { return page_count_; }
  std::int64_t page_tokens() const { return runner_->facts().kv.block; }
  // Limits all sequences together to `pages` KV pages, which must suffice for one sequence of full length. Only while
  // idle.
  void limit_pages(std::int64_t pages);

  // Queues a request. UserError when the prompt is empty, longer than the context, or holds an id outside the
  // vocabulary.
  int add(std::vector<int> prompt, SamplingParameters parameters);
  // Runs one step for as many requests as fit, and returns its events, which are valid until the next step; none while
  // idle. When it throws, all requests are unchanged. It allocates nothing, except for text that exceeds the capacity
  // of a std::string, and by constraints, whose masks are made when they
  // are first needed. A step that breaks the device ends its own requests as failed. The next step opens the device
  // again and recomputes the other requests. DeviceError where the device cannot be opened.
  std::span<const RequestEvent> step();
  bool is_idle() const { return requests_.empty(); }
  // Cancels a request and releases its pages; does nothing for a finished request. Not within a step.
  void cancel(int request);

  // One request from start to end.
  struct Generation {
    std::vector<int> tokens;
    std::string text;
    FinishReason finished = FinishReason::none;
    double prompt_seconds = 0;      // until the first token
    double generation_seconds = 0;  // for the others
  };
  Generation generate(const std::vector<int>& prompt, const SamplingParameters& parameters,
                      const std::function<void(const std::string&)>& on_text = {});

  // Runs `ids` as one sequence and calls `visit(row, logits)` in order for every row of `rows` (positions in `ids`,
  // ascending).
  void score(const std::vector<int>& ids, const std::vector<int>& rows,
             const std::function<void(int row, std::span<const float> logits)>& visit);

 private:
  struct Request {
    int id = 0;
    std::vector<int> prompt;
    std::vector<int> output;
    SamplingParameters parameters;
    std::vector<std::int32_t> pages;
    std::int64_t computed = 0;                        // tokens whose keys and values are in the pages
    std::optional<StreamingDetokenizer> detokenizer;  // nullopt without a tokenizer
    StopTexts stops;
    std::unique_ptr<TokenMask> mask;  // null without a constraint

    std::string text_of(int token) { return detokenizer ? detokenizer->push(token) : ""; }
    std::string last_text() { return detokenizer ? detokenizer->finish() : ""; }
    std::int64_t token_count() const { return static_cast<std::int64_t>(prompt.size() + output.size()); }
    int token(std::int64_t at) const {
      const auto i = static_cast<std::size_t>(at);
      return i < prompt.size() ? prompt[i] : output[i - prompt.size()];
    }
  };
  struct Chunk {
    Request* request;
    std::int64_t rows;
  };

  void reopen_device();
  void fail_chunks(const std::string& error);
  void schedule();
  bool reserve_pages(Request& request, std::int64_t tokens);
  const Tensor& run(std::span<const Chunk> chunks, std::span<const std::int64_t> logit_rows);
  // Copies row `row` of the step's logits into logits_. Returns "", or the error where a logit is not a number.
  std::string take_logits(const Request& request, const Tensor& logits, std::int64_t row);
  // Masks logits_ by the request's constraint. Returns "", or the error where no token is left.
  std::string constrain(Request& request);
  RequestEvent advance(Request& request, std::span<const float> logits);
  bool is_special(int token) const;
  bool ends_text(int token) const;

  std::shared_ptr<Context> context_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null for a dummy checkpoint without one
  std::int64_t page_count_ = 0;
  KvPagePool pool_;
  std::deque<std::unique_ptr<Request>> requests_;  // oldest first
  int next_request_ = 0;

  // State of the current step. The memory is reused by the next step.
  std::vector<Chunk> chunks_;
  std::vector<std::int64_t> logit_rows_;
  StepBuffer step_;
  std::vector<float> logits_;  // one row
  Sampler sampler_;
  std::vector<RequestEvent> events_;
};

}  // namespace weft
