#include <chrono>

#include "capi/handles.h"
#include "engine/sampling/sampling_request.h"

namespace weft {
namespace {

// UserError unless the caller's struct has the size that it has in this version.
template <class Struct>
void check_size(const Struct& given, std::string_view function, std::string_view type) {
  USER_CHECK(given.size == sizeof(Struct),
             "[{}] {}.size must be {}, the size of its type in version {} of weft.h, but is {}", function, type,
             sizeof(Struct), WEFT_ABI_VERSION, given.size);
}

weft_sampling sampling_for_caller(const SamplingParameters& parameters) {
  return {.size = sizeof(weft_sampling),
          .max_tokens = parameters.max_tokens,
          .temperature = parameters.temperature,
          .top_k = parameters.top_k,
          .top_p = parameters.top_p,
          .min_p = parameters.min_p,
          .repetition_penalty = parameters.repetition_penalty,
          .frequency_penalty = parameters.frequency_penalty,
          .presence_penalty = parameters.presence_penalty,
          .seed = parameters.seed,
          .stop = nullptr,
          .stop_count = 0,
          .ignore_end = parameters.ignore_end ? 1 : 0};
}

SamplingParameters sampling_from_caller(const weft_sampling& given) {
  return {.temperature = given.temperature,
          .top_k = given.top_k,
          .top_p = given.top_p,
          .min_p = given.min_p,
          .repetition_penalty = given.repetition_penalty,
          .frequency_penalty = given.frequency_penalty,
          .presence_penalty = given.presence_penalty,
          .seed = given.seed,
          .max_tokens = given.max_tokens,
          .ignore_end = given.ignore_end != 0,
          .stop = given_texts(given.stop, given.stop_count, "weft_model_complete", "sampling.stop")};
}

SamplingParameters sampling_of_model(Engine& engine) {
  return sampling_parameters({}, engine.runner().checkpoint(), engine.context().log);
}

int64_t finish_for_caller(FinishReason reason) {
  return reason == FinishReason::stop ? WEFT_FINISH_STOP : WEFT_FINISH_LENGTH;
}

// Calls the callback. Returns whether it wants more tokens.
bool show(weft_token_function on_token, void* state, const RequestEvent& event) {
  try {
    return on_token(state, event.text.c_str(), event.text.size(), event.token) == 0;
  } catch (const std::exception& error) {
    fail_user("[weft_model_complete] on_token threw: {}", error.what());
  } catch (...) {
    fail_user("[weft_model_complete] on_token threw something that is not an exception");
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

weft_completion complete(Engine& engine, const std::string& prompt, const SamplingParameters& parameters,
                         weft_token_function on_token, void* state) {
  const std::vector<int> ids = engine.tokenizer().encode(prompt);
  weft_completion done{.size = sizeof(weft_completion), .prompt_tokens = static_cast<int64_t>(ids.size())};
  struct Cancelled {  // also after an exception, the next completion must find an idle engine
    Engine& engine;
    int request;
    ~Cancelled() { engine.cancel(request); }
  } cancelled{engine, engine.add(ids, parameters)};
  auto start = std::chrono::steady_clock::now();
  while (done.finish == 0) {
    for (const RequestEvent& event : engine.step()) {
      if (event.finished == FinishReason::failed) fail_by(event);
      if (done.tokens == 0) {
        done.prompt_seconds = seconds_since(start);
        start = std::chrono::steady_clock::now();
      }
      ++done.tokens;
      const bool goes_on = show(on_token, state, event);
      if (event.finished != FinishReason::none) {
        done.finish = finish_for_caller(event.finished);
      } else if (!goes_on) {
        done.finish = WEFT_FINISH_CALLBACK;
      }
    }
  }
  done.generation_seconds = seconds_since(start);
  return done;
}

}  // namespace
}  // namespace weft

extern "C" {

int weft_model_sampling(weft_model* model, weft_sampling* sampling, weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_model_sampling";
    weft::given(model, name, "model");
    weft::check_size(weft::given(sampling, name, "sampling"), name, "weft_sampling");
    const weft::HandleMutex::Lock lock(model->mutex, name);
    *sampling = weft::sampling_for_caller(weft::sampling_of_model(*model->engine));
  });
}

int weft_model_complete(weft_model* model, const char* prompt, const weft_sampling* sampling,
                        weft_token_function on_token, void* state, weft_completion* completion, weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_model_complete";
    weft::given(model, name, "model");
    const std::string text = weft::given_text(prompt, name, "prompt");
    USER_CHECK(on_token != nullptr, "[{}] on_token must be given, but is null", name);
    if (sampling != nullptr) weft::check_size(*sampling, name, "weft_sampling");
    if (completion != nullptr) weft::check_size(*completion, name, "weft_completion");
    const weft::HandleMutex::Lock lock(model->mutex, name);
    const weft_completion done = weft::complete(
        *model->engine, text,
        sampling == nullptr ? weft::sampling_of_model(*model->engine) : weft::sampling_from_caller(*sampling), on_token,
        state);
    if (completion != nullptr) *completion = done;
  });
}
}
