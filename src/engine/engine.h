#pragma once

// Requests over one loaded model. Several sequences share a step: those that generate go first, then prompts in the
// order they came, cut into chunks to fit --max-num-batched-tokens. KV pages are handed out as sequences grow; when
// none are left the youngest sequence gives its own back and starts over later.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/kv_page_pool.h"
#include "engine/model_runner.h"
#include "engine/sampler.h"
#include "engine/step_buffer.h"
#include "engine/stop_texts.h"
#include "io/detokenizer.h"
#include "io/tokenizer.h"

namespace weft {

enum class FinishReason : std::uint8_t { none, stop, length, failed };

// Something that happened to a request in a step.
struct RequestEvent {
  int request = 0;
  int token = -1;    // the new token
  std::string text;  // what became whole with it; never half a character, never part of a stop text
  FinishReason finished = FinishReason::none;
  std::string error = {};     // with failed; there is no token then
  bool is_of_device = false;  // the error: of the device, and not of the model
};

// Throws the error of an event that failed: DeviceError or UserError.
[[noreturn]] void fail_by(const RequestEvent& event);

class Engine {
 public:
  // UserError for whatever is wrong with the checkpoint or the options. `watch` gets the laps tokenizer, those of
  // ModelRunner, and pages.
  Engine(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models,
         Stopwatch* watch = nullptr);

  ModelRunner& runner() { return *runner_; }
  // UserError where a dummy checkpoint has none: its requests are of token ids, and their text is empty.
  const Tokenizer& tokenizer() const;
  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  const Context& context() const { return *context_; }
  std::int64_t max_model_len() const { return runner_->facts().config.context_length; }

  // Leaves `pages` KV pages for all sequences together; at least one sequence's worth must fit. Only while idle.
  void limit_pages(std::int64_t pages);

  // Queues a request. UserError when the prompt is empty, longer than the context, or holds an id outside the
  // vocabulary.
  int add(std::vector<int> prompt, SamplingParameters parameters);
  // One step for as many requests as fit; nothing to do gives no events. They are valid until the next step. Where it
  // throws, all requests are as they were. It takes no memory, but for text that a std::string has no room for.
  // What breaks the device ends the requests of its step, as failed. The next step opens the device anew, and what the
  // other requests had computed is computed again. DeviceError where it does not come back.
  std::span<const RequestEvent> step();
  bool is_idle() const { return requests_.empty(); }
  // Ends a request before its end and takes its pages back; nothing happens to one that is over. Not within a step.
  void cancel(int request);

  // One request from start to end.
  struct Generation {
    std::vector<int> tokens;
    std::string text;
    FinishReason finished = FinishReason::none;
    double prompt_seconds = 0;      // to the first token
    double generation_seconds = 0;  // for the others
  };
  Generation generate(const std::vector<int>& prompt, const SamplingParameters& parameters,
                      const std::function<void(const std::string&)>& on_text = {});

  // Logits of every row of `rows` (positions in ids, ascending) when the ids are fed in one sequence: calls
  // `visit(row, logits)` in order.
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
    std::optional<StreamingDetokenizer> detokenizer;  // none without a tokenizer
    StopTexts stops;

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
  // Row `row` of the logits of the step that ran, in logits_; "", or the error where one is not a number.
  std::string take_logits(const Request& request, const Tensor& logits, std::int64_t row);
  RequestEvent advance(Request& request, std::span<const float> logits);
  bool is_special(int token) const;
  bool ends_text(int token) const;

  std::shared_ptr<Context> context_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null of a dummy checkpoint without one
  KvPagePool pool_;
  std::deque<std::unique_ptr<Request>> requests_;  // oldest first
  int next_request_ = 0;

  // Of the step that runs, in memory that stays for the next one.
  std::vector<Chunk> chunks_;
  std::vector<std::int64_t> logit_rows_;
  StepBuffer step_;
  std::vector<float> logits_;  // one row
  Sampler sampler_;
  std::vector<RequestEvent> events_;
};

}  // namespace weft
