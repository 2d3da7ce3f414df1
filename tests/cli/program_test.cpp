#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/tensor_file.h"
#include "apps/cli/verb.h"
#include "builtin/models.h"
#include "tensor/meta.h"
#include "tests/program_run.h"

namespace weft::program_test {

void expect_refused(const std::vector<std::string>& words, const std::string& part, const std::string& input = "") {
  const ProgramRun outcome = run_weft(words, input);
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

class ProgramFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("weft_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

TEST(Program, NamesTheNearestVerb) { expect_refused({"compelte"}, "did you mean \"complete\"?"); }

TEST(Program, NamesTheNearestOptionOfTheTable) {
  expect_refused({"complete", "m", "-p", "x", "--max-model-length", "4"}, "did you mean \"max-model-len\"?");
  expect_refused({"complete", "m", "-p", "x", "-cc.mod=3"}, "did you mean \"cc.mode\"?");
}

TEST(Program, NamesTheNearestFlagOfTheVerb) {
  expect_refused({"complete", "m", "-p", "x", "--tmep", "1"}, "did you mean \"temp\"?");
}

TEST(Program, NamesTheNearestSubcommand) {
  expect_refused({"dump", "kernles"}, "did you mean \"kernels\"?");
  expect_refused({"graph"}, "print, verify, opt, match, run");
}

TEST(Program, RefusesAModelThatIsNotThere) {
  expect_refused({"complete", "/nonexistent/model.gguf", "-p", "x"}, "[model]");
  expect_refused({"tokenize", "smollm2-135n", "-p", "x"}, "did you mean \"smollm2-135m\"?");
  expect_refused({"complete", "-p", "x"}, "model is required");
}

TEST(Program, SaysHowToFetchABuiltInModel) {
  expect_refused({"tokenize", "smollm2-135m", "-p", "x"}, "fetch_model.py");
}

TEST_F(ProgramFiles, ModelsRootHasModelsByName) {
  std::filesystem::create_directories(path("root/tiny"));
  std::filesystem::create_directories(path("root/smollm2-135m"));
  write("root/other.gguf", "");
  const auto resolved = [&](const std::string& name) { return resolve_model(name, path("root")); };
  for (const char* name : {"tiny", "other.gguf", "smollm2-135m"})
    EXPECT_EQ(resolved(name), path("root/" + std::string(name)));
  EXPECT_EQ(resolved("other"), path("root/other.gguf"));
  expect_refused({"tokenize", "tinny", "-p", "x", "--models-root", path("root")}, path("root"));
}

TEST(Program, RefusesEmptyValuesByTheirFlags) {
  for (const auto& [verb, flag] : {std::pair{"template", "--chat-template"},
                                   {"explain", "--why-not"},
                                   {"complete", "--models-root"},
                                   {"complete", "--patterns"},
                                   {"complete", "--skip-pass"},
                                   {"logits", "--ids"}})
    expect_refused({verb, "m", flag, ""}, std::string(flag).substr(2) + "] wanted a value, but is \"\" (empty)");
}

TEST(Program, RefusesAPromptThatIsNotUtf8) {
  expect_refused({"tokenize", "m", "-p", "abc\xff"}, "from byte 3 on");
  expect_refused({"tokenize", "m", "-p", "-"}, "from byte 0 on", "\xc0\xaf");
}

TEST(Program, RefusesAMissingPrompt) { expect_refused({"complete", "m"}, "[prompt] must be given"); }

TEST(Program, RefusesNumbersOutOfBounds) {
  expect_refused({"complete", "m", "-p", "x", "--max-model-len", "-5"}, "[max-model-len]");
  expect_refused({"complete", "m", "-p", "x", "--max-model-len", "99999999999999999999"}, "[max-model-len]");
  expect_refused({"complete", "m", "-p", "x", "-n", "99999999999999999999"}, "[--max-tokens]");
  expect_refused({"complete", "m", "-p", "x", "--temp", "warm"}, "warm");
  expect_refused({"bench", "model", "m", "-p", "-1"}, "[-p] must be at least 0");
  expect_refused({"bench", "model", "m", "-p", "0", "-n", "0"}, "nothing to measure");
  expect_refused({"bench", "model", "m", "-r", "0"}, "[-r]");
}

TEST(Program, RefusesAStandardInputThatCannotBeRead) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"complete", "m", "-p", "-"},
                                                {"tokenize", "m", "-p", "-"},
                                                {"detokenize", "m"},
                                                {"detokenize", "m", "-"},
                                                {"template", "m", "--messages", "-"}}) {
    std::ifstream folder("/");  // it can be opened, and the first read fails
    ASSERT_TRUE(folder.is_open());
    EXPECT_EQ(breach_of_refusal(run_weft(words, folder), "[stdin]"), "") << words[0];
  }
}

TEST(Program, RefusesTwoInputsAndNamesBoth) {
  const std::pair<std::vector<std::string>, std::pair<std::string, std::string>> cases[] = {
      {{"logits", "m", "--ids", "[1]", "-p", "a"}, {"--ids", "--prompt"}},
      {{"logits", "m", "--ids", "[1]", "-f", "a"}, {"--ids", "--file"}},
      {{"detokenize", "m", "[28]", "--ids", "[29]"}, {"[28]", "[29]"}}};
  for (const auto& [words, names] : cases) {
    expect_refused(words, names.first);
    expect_refused(words, names.second);
  }
}

TEST(Program, RefusesIdsThatAreNone) {
  expect_refused({"detokenize", "m", "[1, -2]"}, "must hold token ids");
  expect_refused({"detokenize", "m", "{}"}, "must be a JSON list");
  expect_refused({"detokenize", "m", "-"}, "must be a JSON list", "[1,");
}

TEST(Program, NamesTheNearestPassOrAll) {
  expect_refused({"info", "--skip-pass", "fuse_nrm"}, "did you mean \"fuse_norm_quant\"?");
  expect_refused({"info", "--skip-pass", "xyzzy"}, "; there are functionalize, ");
}

TEST(Program, RefusesAnUnknownPass) {
  expect_refused({"dump", "kernels", "--print-ir-after", "lowr"}, "did you mean \"lower\"?");
}

TEST(Program, HelpOfEveryVerbWorks) {
  const VerbTable verbs = make_verb_table();
  for (const auto& [name, verb] : verbs.all()) {
    const ProgramRun outcome = run_weft({name, "--help"});
    EXPECT_EQ(outcome.status, 0) << name;
    EXPECT_NE(outcome.out.find(verb.summary), std::string::npos) << outcome.out;
  }
}

TEST(Program, CompletionKnowsEveryVerbAndOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const ProgramRun outcome = run_weft({"completion", shell});
    EXPECT_EQ(outcome.status, 0);
    for (const char* word : {"detokenize", "kernels", "max-model-len", "cc.splitting_ops", "repeat-penalty"})
      EXPECT_NE(outcome.out.find(word), std::string::npos) << shell << " " << word;
  }
  expect_refused({"completion", "fihs"}, "did you mean \"fish\"?");
}

TEST(Program, RefusesVariablesThatMirrorNoOption) {
  const ProgramRun refused = run_weft({"info"}, "", {{"WEFT_ARG_THRAEDS", "1"}});
  EXPECT_EQ(breach_of_refusal(refused, "\"WEFT_ARG_THRAEDS\", did you mean \"WEFT_ARG_THREADS\"?"), "");
  EXPECT_EQ(run_weft({"--help"}, "", {{"WEFT_ARG_THRAEDS", "1"}}).status, 0);
  EXPECT_EQ(run_weft({"info"}, "", {{"WEFT_ARG_THREADS", "1"}, {"WEFT_OTHER", "1"}}).status, 0);
}

TEST(Program, SaysOnceThatAnOptionHasNoEffect) {
  const ProgramRun outcome = run_weft({"info", "--json", "-cc.cudagraph_num_of_warmups=2"});
  EXPECT_EQ(outcome.status, 0);
  const std::size_t first = outcome.err.find("cudagraph_num_of_warmups");
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("cudagraph_num_of_warmups", first + 1), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(outcome.out).contains("features"));
}

TEST_F(ProgramFiles, TemplateRendersAnObjectOfVariables) {
  const std::string messages = write("m.json", R"({"messages": [{"role": "user", "content": "Hi"}], "mood": "calm"})");
  const std::string jinja = write("t.jinja", "{{ mood }}:{{ messages[0].content }}:{{ add_generation_prompt }}");
  const ProgramRun outcome =
      run_weft({"template", "--messages", messages, "--template", jinja, "--no-generation-prompt"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "calm:Hi:False");
}

TEST_F(ProgramFiles, TemplateRefusesWhatIsNoConversation) {
  expect_refused({"template", "--messages", write("m.json", "7"), "--template", write("t.jinja", "x")}, "[messages]");
  for (const char* none : {"[]", R"({"a": 1})", R"({"messages": []})", R"({"messages": null})"})
    expect_refused({"template", "--messages", none, "--template", write("t.jinja", "x")},
                   "[messages] must have at least one message");
  const std::string messages = R"([{"role": "user", "content": "Hi"}])";
  expect_refused({"template", "--messages", messages}, "[model] must be given");
}

TEST_F(ProgramFiles, GraphRunGivesTheSameBitsEagerlyAndCompiled) {
  const std::string graph = write("g.graph",
                                  "graph g(%x: f32[s0, 8], %w: f32[4]) stage=traced {\n"
                                  "  %a = silu_and_mul(%x)\n"
                                  "  %b = rms_norm(%a, %w, epsilon=1e-05)\n"
                                  "  return %a, %b\n}\n");
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {3, 8})), w = Tensor::empty(Meta::tensor(DType::f32, {4}));
  for (int i = 0; i < 24; ++i) x.as<float>()[i] = 0.25f * static_cast<float>(i) - 2;
  for (int i = 0; i < 4; ++i) w.as<float>()[i] = 1 + static_cast<float>(i);
  write_results(path("in"), {{"x", x}, {"w", w}});
  for (const char* mode : {"--enforce-eager", "--no-enforce-eager"}) {
    const ProgramRun outcome = run_weft({"graph", "run", graph, "--in", path("in"), "--out", path(mode), mode});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  const TensorFile eager(path("--enforce-eager")), compiled(path("--no-enforce-eager"));
  ASSERT_EQ(eager.names(), compiled.names());
  ASSERT_EQ(eager.names().size(), 2u);
  for (const std::string& name : eager.names()) {
    const Tensor a = *eager.find(name), b = *compiled.find(name);
    ASSERT_EQ(a.meta, b.meta);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.storage->bytes())), 0) << name;
  }
  expect_refused({"graph", "run", graph, "--in", path("in"), "--out", "/nonexistent/out"}, "/nonexistent/out");
}

TEST_F(ProgramFiles, OpRunsEveryProviderOnAFile) {
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {1, 4}));
  for (int i = 0; i < 4; ++i) x.as<float>()[i] = 2;
  write_results(path("in"), {{"x", x}});
  for (const char* provider : {"cpu", "native"}) {
    const ProgramRun outcome = run_weft({"op", "rms_norm", "--in", path("in"), "--attr", "epsilon=0.0", "--provider",
                                         provider, "--out", path("out"), "--json"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["provider"], provider);
    EXPECT_FLOAT_EQ(TensorFile(path("out")).find("0")->as<float>()[3], 1.0f);
  }
  expect_refused({"op", "rms_norm", "--in", path("in"), "--out", path("o")}, "epsilon must be given");
  expect_refused({"op", "silu_and_mul", "--in", path("none"), "--out", path("o")}, path("none"));
  expect_refused({"op", "rms_nrm", "--in", path("in"), "--out", path("o")}, "did you mean \"rms_norm\"?");
}

TEST_F(ProgramFiles, GraphOptRunsNamedPassesOnly) {
  const std::string graph = write("g.graph",
                                  "graph g(%x: f32[s0, 8]) stage=traced {\n  %a = abs(%x)\n  %b = abs(%x)\n"
                                  "  return %b\n}\n");
  const ProgramRun outcome = run_weft({"graph", "opt", graph, "--passes", "functionalize,dead_code_elimination"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("%a"), std::string::npos) << outcome.out;
  expect_refused({"graph", "opt", graph, "--passes", "split"}, "needs a graph of stage lowered");
  expect_refused({"graph", "opt", graph, "--to", "lowerd"}, "[--to]");
  expect_refused({"graph", "verify", write("bad.graph", "graph g(")}, "bad.graph");
}

}  // namespace weft::program_test
