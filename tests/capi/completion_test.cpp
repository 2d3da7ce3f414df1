#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/capi/tiny_completion.h"

namespace weft::completion_test {

TEST(CCompletion, CompletesAsTheProgramDoes) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model());
  Listener listener;
  weft_completion completion{};
  completion.size = sizeof completion;
  ASSERT_EQ(complete(model, listener, sampling_for(model, 12), &completion), WEFT_SUCCESS);
  EXPECT_EQ(listener.text, answer_of_program());
  EXPECT_EQ(completion.finish, WEFT_FINISH_LENGTH);
  EXPECT_EQ(completion.tokens, 12);
  EXPECT_EQ(listener.tokens.size(), 12U);
  EXPECT_EQ(completion.prompt_tokens, 16) << "a vocabulary of bytes";
  EXPECT_GT(completion.prompt_seconds, 0);
  EXPECT_GT(completion.generation_seconds, 0);
}

TEST(CCompletion, DrawsAsTheProgramDoes) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model());
  weft_sampling sampling = sampling_for(model, 12);
  sampling.temperature = 1.5;
  sampling.top_k = 40;
  sampling.top_p = 0.9;
  sampling.repetition_penalty = 1.2;
  sampling.seed = 7;
  const char* stop = "never said";
  sampling.stop = &stop;
  sampling.stop_count = 1;
  Listener listener;
  ASSERT_EQ(complete(model, listener, sampling), WEFT_SUCCESS);
  EXPECT_EQ(listener.text, answer_of_program({"--temp", "1.5", "--top-k", "40", "--top-p", "0.9", "--repeat-penalty",
                                              "1.2", "-s", "7", "--stop", "never said"}));
}

TEST(CCompletion, TheCallbackEndsACompletionAndTheNextBeginsAnew) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model());
  const std::string text = answer_of(model);
  Listener listener;
  listener.answer = [&] { return listener.tokens.size() == 3 ? 1 : 0; };
  weft_completion completion{};
  completion.size = sizeof completion;
  ASSERT_EQ(complete(model, listener, sampling_for(model, 12), &completion), WEFT_SUCCESS);
  EXPECT_EQ(completion.finish, WEFT_FINISH_CALLBACK);
  EXPECT_EQ(completion.tokens, 3);
  EXPECT_TRUE(text.starts_with(listener.text)) << listener.text;
  EXPECT_EQ(answer_of(model), text);
}

TEST(CCompletion, WhatTheCallbackThrowsIsTheUsersErrorAndTheModelGoesOn) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model());
  const std::string text = answer_of(model);
  Listener listener;
  listener.answer = []() -> int { throw std::runtime_error("the pipe broke"); };
  EXPECT_EQ(breach_of_user_error(
                [&](weft_error* error) { return complete(model, listener, sampling_for(model, 12), nullptr, error); },
                {"on_token threw: the pipe broke"}),
            "");
  listener.answer = []() -> int { throw 3; };
  EXPECT_EQ(breach_of_user_error(
                [&](weft_error* error) { return complete(model, listener, sampling_for(model, 12), nullptr, error); },
                {"on_token threw"}),
            "");
  EXPECT_EQ(answer_of(model), text);
}

TEST(CCompletion, AMessageTooLongIsCutAtAWholeCharacter) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model());
  const std::string prefix = "[weft_model_complete] on_token threw: ";
  std::string characters;
  for (std::size_t i = 0; i < sizeof(weft_error); ++i) characters += "é";
  for (const std::size_t shift : {0, 1}) {
    const std::string wanted = prefix + std::string(shift, 'x') + characters;
    Listener listener;
    listener.answer = [&]() -> int { throw std::runtime_error(wanted.substr(prefix.size())); };
    weft_error error;
    EXPECT_EQ(complete(model, listener, sampling_for(model, 1), nullptr, &error), WEFT_USER_ERROR);
    const std::string text = error.text;
    EXPECT_GE(text.size(), sizeof error.text - 2);
    EXPECT_TRUE(wanted.starts_with(text));
    EXPECT_EQ(first_invalid_utf8(text), std::nullopt);
  }
}

TEST(CCompletion, ItsOwnCallbackMayNotUseItButMayUseOthers) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model()), other(context, tiny_model());
  const weft_sampling sampling = sampling_for(model, 1);
  Listener listener;
  listener.answer = [&] {
    const auto refused = [&](auto&& call) {
      EXPECT_EQ(breach_of_user_error(call, {"must not be called from the callback of the same handle"}), "");
    };
    Listener inner;
    char* text = nullptr;
    weft_sampling again = sampling;
    refused([&](weft_error* error) { return complete(model, inner, sampling, nullptr, error); });
    refused([&](weft_error* error) { return weft_model_selected_impls(model, &text, error); });
    refused([&](weft_error* error) { return weft_model_sampling(model, &again, error); });
    refused([&](weft_error* error) { return weft_model_close(model, error); });
    EXPECT_EQ(complete(other, inner, sampling), WEFT_SUCCESS);
    return 0;
  };
  EXPECT_EQ(complete(model, listener, sampling), WEFT_SUCCESS);
  EXPECT_EQ(listener.tokens.size(), 1U);
}

TEST(CCompletion, StopTextsEndItAndAreNoPartOfTheAnswer) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model());
  const std::string text = answer_of(model);
  ASSERT_GE(text.size(), 4U);
  const std::string part = text.substr(3, 1);
  const char* stops[] = {part.c_str()};
  weft_sampling sampling = sampling_for(model, 12);
  sampling.stop = stops;
  sampling.stop_count = 1;
  Listener listener;
  weft_completion completion{};
  completion.size = sizeof completion;
  weft_error error;
  ASSERT_EQ(complete(model, listener, sampling, &completion, &error), WEFT_SUCCESS) << error.text;
  EXPECT_EQ(completion.finish, WEFT_FINISH_STOP);
  EXPECT_EQ(listener.text, text.substr(0, text.find(part)));
}

TEST(CCompletion, DefaultsAreThoseOfItsGenerationConfig) {
  const OwnedContext context;
  const std::string path = checkpoint().write_folder(folder(), "with_config", DType::f32);
  std::ofstream(path + "/generation_config.json") << R"({"do_sample": true, "temperature": 0.6, "top_p": 0.8})";
  const OwnedModel model(context, path);
  const weft_sampling own = sampling_for(model, 128);
  EXPECT_EQ(own.size, sizeof own);
  EXPECT_EQ(own.temperature, 0.6);
  EXPECT_EQ(own.top_p, 0.8);
  EXPECT_EQ(own.stop_count, 0U);
  Listener by_default, spelled;
  ASSERT_EQ(weft_model_complete(model, kPrompt, nullptr, Listener::hear, &by_default, nullptr, nullptr), WEFT_SUCCESS);
  ASSERT_EQ(complete(model, spelled, own), WEFT_SUCCESS);
  EXPECT_EQ(by_default.tokens, spelled.tokens);
  const OwnedModel greedy(context, tiny_model());
  EXPECT_EQ(sampling_for(greedy, 128).temperature, 0);
}

TEST(CCompletion, RefusesPromptsAndParametersOutOfBounds) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model());
  Listener listener;
  const auto breach = [&](const std::string& prompt, const std::function<void(weft_sampling&)>& change,
                          const std::string& part) {
    weft_sampling sampling = sampling_for(model, 1);
    change(sampling);
    return breach_of_user_error(
        [&](weft_error* error) {
          return weft_model_complete(model, prompt.c_str(), &sampling, Listener::hear, &listener, nullptr, error);
        },
        {part});
  };
  const auto nothing = [](weft_sampling&) {};
  const char* empty = "";
  EXPECT_EQ(breach("", nothing, "[prompt] must hold at least one token"), "");
  EXPECT_EQ(breach("a\xff", nothing, "prompt must be UTF-8, but is not from byte 1 on"), "");
  EXPECT_EQ(breach(std::string(1 << 20, 'a'), nothing, "[prompt] must be shorter than the context"), "");
  EXPECT_EQ(breach(
                "a", [](weft_sampling& s) { s.temperature = -1; }, "[temperature]"),
            "");
  EXPECT_EQ(breach(
                "a", [](weft_sampling& s) { s.top_p = 2; }, "[top_p]"),
            "");
  EXPECT_EQ(breach(
                "a", [](weft_sampling& s) { s.max_tokens = 0; }, "[max_tokens]"),
            "");
  EXPECT_EQ(breach(
                "a", [](weft_sampling& s) { s.stop_count = 1; }, "sampling.stop must be given"),
            "");
  const char* second_is_null[] = {"x", nullptr};
  EXPECT_EQ(breach(
                "a",
                [&](weft_sampling& s) {
                  s.stop = second_is_null;
                  s.stop_count = 2;
                },
                "sampling.stop[1] must be given, but is null"),
            "");
  EXPECT_EQ(breach(
                "a",
                [&](weft_sampling& s) {
                  s.stop = &empty;
                  s.stop_count = 1;
                },
                "[stop]"),
            "");
  EXPECT_TRUE(listener.tokens.empty());
  EXPECT_FALSE(answer_of(model).empty());
}

}  // namespace weft::completion_test
