#pragma once

// A tiny model to open by the C interface, and completions of it.

#include <functional>
#include <string>
#include <vector>

#include "builtin/models.h"
#include "tests/capi/handles.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft {

inline const TemporaryFolder& folder() {
  static const TemporaryFolder shared;
  return shared;
}

inline SampleCheckpoint checkpoint() { return SampleCheckpoint(make_model_registry().find("llama", "the test")); }

inline const std::string& tiny_model() {
  static const std::string path = checkpoint().write_gguf(folder(), "tiny.gguf", DType::q4_1);
  return path;
}

// The same in f32: no activation is quantized, so no norm is fused with that.
inline const std::string& plain_model() {
  static const std::string path = checkpoint().write_folder(folder(), "plain", DType::f32);
  return path;
}

inline constexpr const char* kPrompt = "Once upon a time";

// The callback of a completion, and the tokens that it received.
struct Listener {
  std::string text;
  std::vector<int> tokens;
  std::function<int()> answer = [] { return 0; };

  static int hear(void* state, const char* text, size_t length, int32_t token) {
    auto& listener = *static_cast<Listener*>(state);
    EXPECT_EQ(text[length], '\0');
    listener.text.append(text, length);
    listener.tokens.push_back(token);
    return listener.answer();
  }
};

inline weft_sampling sampling_for(weft_model* model, int64_t tokens) {
  weft_sampling sampling;
  sampling.size = sizeof sampling;
  EXPECT_EQ(weft_model_sampling(model, &sampling, nullptr), WEFT_SUCCESS);
  sampling.max_tokens = tokens;
  return sampling;
}

inline int complete(weft_model* model, Listener& listener, const weft_sampling& sampling,
                    weft_completion* completion = nullptr, weft_error* error = nullptr) {
  return weft_model_complete(model, kPrompt, &sampling, Listener::hear, &listener, completion, error);
}

// The model's answer of 12 tokens.
inline std::string answer_of(weft_model* model) {
  Listener listener;
  weft_error error;
  EXPECT_EQ(complete(model, listener, sampling_for(model, 12), nullptr, &error), WEFT_SUCCESS) << error.text;
  return listener.text;
}

// The answer of `weft complete` for tiny_model().
inline std::string answer_of_program(const std::vector<std::string>& flags = {}) {
  std::vector<std::string> words{"complete", tiny_model(), "-p", kPrompt, "-n", "12", "-t", "2"};
  words.insert(words.end(), flags.begin(), flags.end());
  const ProgramRun run = run_weft(words);
  EXPECT_EQ(run.status, 0) << run.err;
  return run.out.substr(0, run.out.size() - 1);
}

}  // namespace weft
