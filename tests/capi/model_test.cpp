#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "tests/capi/tiny_completion.h"

namespace weft::model_test {

// The number of nodes of an op that each provider computes.
std::map<std::string, int> providers_of(weft_model* model, const std::string& op) {
  std::map<std::string, int> counts;
  for (const nlohmann::json& record : json_of(weft_model_selected_impls, model))
    if (record["impls"].contains(op))
      for (const nlohmann::json& provider : record["impls"][op]) ++counts[provider.get<std::string>()];
  return counts;
}

TEST(CModel, PrioritiesChangeTheReportAndNotTheText) {
  const OwnedContext context(OptionPairs{{"cc.backend", "eager"}});
  const OwnedModel standard(context, plain_model());
  const char* providers[] = {"reference", "cpu"};
  weft_priority_scope scope = 0;
  ASSERT_EQ(weft_priority_push(context, "rms_norm", providers, 2, &scope, nullptr), WEFT_SUCCESS);
  const OwnedModel other(context, plain_model());
  ASSERT_EQ(weft_priority_pop(context, scope, nullptr), WEFT_SUCCESS);
  const OwnedModel after(context, plain_model());
  const std::map<std::string, int> by_cpu = providers_of(standard, "rms_norm");
  ASSERT_EQ(by_cpu.size(), 1U);
  EXPECT_GT(by_cpu.at("cpu"), 0);
  EXPECT_EQ(providers_of(other, "rms_norm"), (std::map<std::string, int>{{"reference", by_cpu.at("cpu")}}));
  EXPECT_EQ(providers_of(after, "rms_norm"), by_cpu);
  const std::string text = answer_of(standard);
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(answer_of(other), text);
  EXPECT_EQ(answer_of(after), text);
}

TEST(CModel, KeepsWhatItsContextSaidWhenItWasOpened) {
  for (const char* eager : {"false", "true"}) {
    OwnedContext context(OptionPairs{{"enforce-eager", eager}});
    const OwnedModel model(context, tiny_model());
    const std::string text = answer_of(model);
    // Weights are laid out for the kernels of cpu, which these cannot read.
    const char* reference = "reference";
    ASSERT_EQ(weft_priority_set(context, "linear_int8", &reference, 1, nullptr), WEFT_SUCCESS);
    EXPECT_EQ(answer_of(model), text);
    context.end();
    EXPECT_EQ(answer_of(model), text) << "the context is gone";
  }
}

TEST(CModel, SelectedImplsNameEveryGraphAndRange) {
  const OwnedContext context(OptionPairs{{"cc.compile_ranges_split_points", "8"}});
  const OwnedModel model(context, tiny_model());
  std::map<std::string, int> ranges;
  for (const nlohmann::json& record : json_of(weft_model_selected_impls, static_cast<weft_model*>(model))) {
    ++ranges[record["graph"]];
    EXPECT_LE(record["range"][0], record["range"][1]);
  }
  EXPECT_GE(ranges["forward"], 2);
  EXPECT_GE(ranges["head"], 1);
  const OwnedContext eager(OptionPairs{{"enforce-eager", ""}});
  const OwnedModel op_by_op(eager, tiny_model());
  EXPECT_EQ(text_of(weft_model_selected_impls, static_cast<weft_model*>(op_by_op)), "[]");
}

TEST(CModel, OpensAnArtifactAsTheModelItWasMadeOf) {
  const std::string artifact = folder() / "tiny.weft";
  const ProgramRun run = run_weft({"compile", tiny_model(), "-o", artifact, "-t", "2", "--cc.mode=2"});
  ASSERT_EQ(run.status, 0) << run.err;
  const OwnedContext context;
  const OwnedModel model(context, artifact);
  EXPECT_EQ(answer_of(model), answer_of_program({"--cc.mode=2"}));
  // The graph as it was compiled. In mode 3 it would be split, and its pieces would be listed.
  EXPECT_EQ(json_of(weft_model_selected_impls, static_cast<weft_model*>(model)),
            json_of(weft_model_selected_impls,
                    static_cast<weft_model*>(OwnedModel(OwnedContext(OptionPairs{{"cc.mode", "2"}}), tiny_model()))));
  const OwnedContext other(OptionPairs{{"kv-cache-dtype", "f32"}});
  weft_model* refused = nullptr;
  EXPECT_EQ(
      breach_of_user_error([&](weft_error* error) { return weft_model_open(other, artifact.c_str(), &refused, error); },
                           {artifact, "kv-cache-dtype"}),
      "");
}

TEST(CModel, NotesWhatIsLeftOut) {
  const OwnedContext context(OptionPairs{{"max-num-seqs", "1000"}, {"max-num-batched-tokens", "100"}});
  EXPECT_EQ(text_of(weft_model_notes, static_cast<weft_model*>(OwnedModel(context, plain_model()))), "")
      << "these options are noted with the context";
  const std::string path = checkpoint().write_folder(folder(), "noted", DType::f32);
  std::ofstream(path + "/generation_config.json") << R"({"eos_token_id": 999999})";
  const std::string notes = text_of(weft_model_notes, static_cast<weft_model*>(OwnedModel(context, path)));
  EXPECT_NE(notes.find("eos_token_id"), std::string::npos) << notes;
  EXPECT_NE(notes.find("999999"), std::string::npos) << notes;
}

TEST(CModel, WarnsInItsNotesAndPrintsNothing) {
  const std::string file = folder() / "no_folder";
  std::ofstream(file) << "a file";
  const OwnedContext context(OptionPairs{{"cache-root", file}, {"disable-compile-cache", "false"}});
  ::testing::internal::CaptureStderr();
  const OwnedModel model(context, plain_model());
  EXPECT_FALSE(answer_of(model).empty());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  const std::string notes = text_of(weft_model_notes, static_cast<weft_model*>(model));
  EXPECT_NE(notes.find(file + "/compile"), std::string::npos) << notes;
  EXPECT_EQ(text_of(weft_context_notes, static_cast<weft_context*>(context)), "") << "it compiled nothing itself";
}

TEST(CModel, RefusesWhatIsNoModel) {
  const OwnedContext context;
  int error_place = 0;
  const auto open_breach = [&](const std::string& name, const std::vector<std::string>& parts) {
    weft_model* model = reinterpret_cast<weft_model*>(&error_place);
    const std::string breach = breach_of_user_error(
        [&](weft_error* error) { return weft_model_open(context, name.c_str(), &model, error); }, parts);
    EXPECT_EQ(model, nullptr);
    return breach;
  };
  const std::string text = folder() / "text.gguf";
  std::ofstream(text) << "no model";
  EXPECT_EQ(open_breach("smollm2-135n", {"[model]", "did you mean \"smollm2-135m\"?"}), "");
  EXPECT_EQ(open_breach("/nonexistent/model.gguf", {"/nonexistent/model.gguf"}), "");
  EXPECT_EQ(open_breach("", {"[model]"}), "");
  EXPECT_EQ(open_breach("\xc3", {"path_or_name must be UTF-8"}), "");
  EXPECT_EQ(open_breach(text, {text}), "");
  const OwnedContext elsewhere(OptionPairs{{"models-root", folder().path()}});
  weft_model* model = nullptr;
  EXPECT_EQ(
      breach_of_user_error([&](weft_error* error) { return weft_model_open(elsewhere, "smollm2-135m", &model, error); },
                           {"smollm2-135m is not at " + folder().path()}),
      "");
}

TEST(CModel, RefusesNullAndStructsOfAnotherSize) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model());
  weft_model* made = nullptr;
  char* json = nullptr;
  Listener listener;
  const weft_sampling right = sampling_for(model, 1);
  weft_sampling small = right, large = right;
  small.size = sizeof small - 8;
  large.size = SIZE_MAX;
  weft_completion none{};
  const auto run = [&](const weft_sampling* sampling, weft_completion* completion, weft_error* error) {
    return weft_model_complete(model, kPrompt, sampling, Listener::hear, &listener, completion, error);
  };
  const std::vector<std::pair<std::string, std::function<int(weft_error*)>>> calls = {
      {"context must be given", [&](weft_error* error) { return weft_model_open(nullptr, "x", &made, error); }},
      {"path_or_name must be given",
       [&](weft_error* error) { return weft_model_open(context, nullptr, &made, error); }},
      {"model must be given", [&](weft_error* error) { return weft_model_open(context, "x", nullptr, error); }},
      {"model must be given", [&](weft_error* error) { return weft_model_notes(nullptr, &json, error); }},
      {"text must be given", [&](weft_error* error) { return weft_model_notes(model, nullptr, error); }},
      {"model must be given", [&](weft_error* error) { return weft_model_sampling(nullptr, &small, error); }},
      {"sampling must be given", [&](weft_error* error) { return weft_model_sampling(model, nullptr, error); }},
      {"weft_sampling.size must be", [&](weft_error* error) { return weft_model_sampling(model, &small, error); }},
      {"weft_sampling.size must be", [&](weft_error* error) { return run(&small, nullptr, error); }},
      {"weft_sampling.size must be", [&](weft_error* error) { return run(&large, nullptr, error); }},
      {"weft_completion.size must be", [&](weft_error* error) { return run(&right, &none, error); }},
      {"model must be given", [&](weft_error* error) { return complete(nullptr, listener, right, nullptr, error); }},
      {"on_token must be given",
       [&](weft_error* error) { return weft_model_complete(model, "x", &right, nullptr, nullptr, nullptr, error); }},
      {"prompt must be given",
       [&](weft_error* error) {
         return weft_model_complete(model, nullptr, &right, Listener::hear, &listener, nullptr, error);
       }},
      {"model must be given", [&](weft_error* error) { return weft_model_selected_impls(nullptr, &json, error); }},
      {"json must be given", [&](weft_error* error) { return weft_model_selected_impls(model, nullptr, error); }},
  };
  for (const auto& [part, call] : calls) EXPECT_EQ(breach_of_user_error(call, {part}), "");
  EXPECT_TRUE(listener.tokens.empty());
  EXPECT_EQ(weft_model_close(nullptr, nullptr), WEFT_SUCCESS);
}

TEST(CModel, ThreadsWithContextsOfTheirOwnKeepTheirLists) {
  const std::string wanted = answer_of(OwnedModel(OwnedContext(), plain_model()));
  const auto run = [&](const char* provider, std::string& text, std::map<std::string, int>& providers) {
    for (int i = 0; i < 2; ++i) {
      const OwnedContext context;
      weft_priority_scope scope = 0;
      EXPECT_EQ(weft_priority_push(context, "rms_norm", &provider, 1, &scope, nullptr), WEFT_SUCCESS);
      const OwnedModel model(context, plain_model());
      EXPECT_EQ(weft_priority_pop(context, scope, nullptr), WEFT_SUCCESS);
      text = answer_of(model);
      providers = providers_of(model, "rms_norm");
    }
  };
  std::string texts[2];
  std::map<std::string, int> providers[2];
  std::thread first([&] { run("reference", texts[0], providers[0]); });
  std::thread second([&] { run("cpu", texts[1], providers[1]); });
  first.join();
  second.join();
  EXPECT_EQ(texts[0], wanted);
  EXPECT_EQ(texts[1], wanted);
  EXPECT_EQ(providers[0].count("reference"), 1U);
  EXPECT_EQ(providers[0].size(), 1U);
  EXPECT_EQ(providers[1].count("cpu"), 1U);
  EXPECT_EQ(providers[1].size(), 1U);
}

TEST(CModel, ThreadsOnOneModelAndContextTakeTurns) {
  const OwnedContext context;
  const OwnedModel model(context, tiny_model());
  const std::string wanted = answer_of(model);
  std::string texts[2];
  std::vector<std::thread> threads;
  for (std::string& text : texts)
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) {
        const char* provider = "reference";
        EXPECT_EQ(weft_priority_set(context, "rms_norm", &provider, 1, nullptr), WEFT_SUCCESS);
        weft_error error;
        EXPECT_EQ(weft_priority_pop(context, 1, &error), WEFT_USER_ERROR);
        EXPECT_NE(std::string(error.text).find("[weft_priority_pop]"), std::string::npos) << "its own message";
        text = answer_of(model);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(texts[0], wanted);
  EXPECT_EQ(texts[1], wanted);
}

}  // namespace weft::model_test
