// Flags of weft serve as scripts for vLLM have them: lists in front of --model, other spellings, and variables.

#include <fstream>

#include <gtest/gtest.h>

#include "base/json.h"
#include "builtin/models.h"
#include "server/http_server.h"
#include "tests/cli/child_program.h"
#include "tests/http_client.h"
#include "tests/sample_checkpoint.h"

namespace weft::serve_flags_test {

using Variables = std::map<std::string, std::string>;

class ServeFlags : public ::testing::Test {
 protected:
  // A start whose port is taken ends after the flags are read and before the model is.
  ProgramRun start(std::vector<std::string> words, const Variables& environment = {}) const {
    words.insert(words.begin(), {"serve", model_, "--port", std::to_string(taken_.port())});
    return run_weft(words, "", environment);
  }
  void expect_accepted(const std::vector<std::string>& words, const std::string& note = "") const {
    const ProgramRun run = start(words);
    EXPECT_NE(run.err.find("[--port]"), std::string::npos) << words[0] << "\n" << run.err;
    EXPECT_NE(run.err.find(note), std::string::npos) << words[0] << "\n" << run.err;
  }

  // The names that a server has for its model, for a client with this key; none if the key is wrong.
  static std::vector<std::string> names(const ChildProgram& program, const std::string& key) {
    if (!program.has_written("prefix cache ")) return {program.errors()};
    const std::string errors = program.errors(), begin = " on http://127.0.0.1:";
    HttpClient client(std::stoi(errors.substr(errors.find(begin) + begin.size())));
    const ClientResponse answer = client.get("/v1/models", "Authorization: Bearer " + key + "\r\n");
    std::vector<std::string> names;
    if (answer.status != 200) return names;
    const Json body = parse_json(answer.body);
    for (const Json& model : body["data"]) names.push_back(model["id"]);
    return names;
  }

  const TemporaryFolder folder_;
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::bf16);
  const HttpServer taken_{"127.0.0.1", 0, {}};
};

TEST_F(ServeFlags, TakesListsInFrontOfTheModel) {
  const std::vector<std::string> wanted{"a", "b"};
  for (const std::vector<std::string>& model : {std::vector<std::string>{"--model", model_}, {"--port", "0", model_}}) {
    std::vector<std::string> words{WEFT_PROGRAM, "serve", "--port",    "0",  "--served_model_name",
                                   "a",          "b",     "--api_key", "k1", "k2"};
    words.insert(words.end(), model.begin(), model.end());
    const ChildProgram program(words, {});
    EXPECT_EQ(names(program, "k1"), wanted);
    EXPECT_EQ(names(program, "k2"), wanted);
    EXPECT_TRUE(names(program, "k3").empty());
  }
}

TEST_F(ServeFlags, TakesListsAndKeysFromTheEnvironment) {
  const Variables variables{{"WEFT_ARG_SERVED_MODEL_NAME", " m1  m2 "}, {"VLLM_API_KEY", "secret"}};
  const ChildProgram program({WEFT_PROGRAM, "serve", model_, "--port", "0"}, variables);
  EXPECT_EQ(names(program, "secret"), (std::vector<std::string>{"m1", "m2"}));
  EXPECT_TRUE(names(program, "other").empty());
  Variables both = variables;
  both["WEFT_API_KEY"] = "own";
  const ChildProgram with_both({WEFT_PROGRAM, "serve", model_, "--port", "0"}, both);
  EXPECT_EQ(names(with_both, "own").size(), 2U);
  EXPECT_TRUE(names(with_both, "secret").empty());
  const ChildProgram with_flag({WEFT_PROGRAM, "serve", model_, "--port", "0", "--api-key", "flag"}, both);
  EXPECT_EQ(names(with_flag, "flag").size(), 2U);
  EXPECT_TRUE(names(with_flag, "own").empty());
}

TEST_F(ServeFlags, TakesSpellingsOfVllm) {
  for (const char* flag : {"--enable_auto_tool_choice", "--disable_log_requests", "--trust_remote_code",
                           "--language-model-only", "--enable-server-load-tracking", "--enable-log-outputs"})
    expect_accepted({flag}, "has no effect");
  const std::vector<std::vector<std::string>> ignored = {{"-pp", "1"},
                                                         {"-pp=1"},
                                                         {"-dp", "1"},
                                                         {"-asc", "2"},
                                                         {"--tokenizer", model_},
                                                         {"--tokenizer", model_ + "/"},
                                                         {"--chat-template-content-format", "string"},
                                                         {"--structured-outputs-config.backend", "xgrammar"},
                                                         {"--structured_outputs_config.backend=guidance"},
                                                         {"--attention-backend", "FLASH_ATTN"},
                                                         {"--limit-mm-per-prompt.image", "0"},
                                                         {"--mm-processor-kwargs", "{\"a\": 1}"},
                                                         {"--hf-overrides", "{ }"}};
  for (const std::vector<std::string>& words : ignored) expect_accepted(words, "has no effect");
  const std::vector<std::vector<std::string>> honoured = {{"-tp", "1"},
                                                          {"--max_model_len", "-1"},
                                                          {"--max-model-len=-1"},
                                                          {"--load-format", "safetensors"},
                                                          {"--max_logprobs", "-1"}};
  for (const std::vector<std::string>& words : honoured) expect_accepted(words);
}

TEST_F(ServeFlags, ComparesTheQuantizationWithTheModel) {
  const auto refusal = [&](const std::string& model, const std::string& value) {
    const ProgramRun run = run_weft({"serve", model, "--port", "0", "--quantization", value}, "");
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_NE(run.err.find("weft: [--quantization] must be"), std::string::npos) << run.err;
    return run.err;
  };
  EXPECT_NE(refusal(model_, "fp8").find("weft quantize --format fp8"), std::string::npos);
  EXPECT_NE(refusal(model_, "awq_marlin").find("weft quantize --format w4a16"), std::string::npos);
  EXPECT_EQ(refusal(model_, "torchao").find("weft quantize"), std::string::npos);
  const std::string written = folder_ / "fp8";
  ASSERT_EQ(run_weft({"quantize", model_, "-o", written, "--format", "fp8"}, "").status, 0);
  EXPECT_NE(refusal(written, "gptq").find("must be fp8 or be left out"), std::string::npos);
}

TEST_F(ServeFlags, SaysWhichParsersThereAre) {
  const std::vector<std::vector<std::string>> unread = {
      {"--tool-call-parser", "pythonic"}, {"--tool-call-parser", "kimi_k2"}, {"--reasoning-parser", "granite"}};
  for (const std::vector<std::string>& words : unread) {
    const ProgramRun run = start(words);
    EXPECT_EQ(breach_of_refusal(run, "[" + words[0] + "]"), "");
    EXPECT_NE(run.err.find("is not read"), std::string::npos) << run.err;
  }
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--tool-call-parser", "llama4_json"}, {"--reasoning-parser", "openai_gptoss"}})
    expect_accepted(words);
}

TEST_F(ServeFlags, TakesListsWithCommas) {
  for (const char* origins : {"*", "https://a.b,https://c.d", "[\"*\"]"})
    expect_accepted({"--allowed-origins", origins});
  for (const char* origins : {"a,,b", "[1]", "{\"a\": 1}"})
    EXPECT_EQ(breach_of_refusal(start({"--allowed-origins", origins}), "[--allowed-origins]"), "") << origins;
  EXPECT_EQ(breach_of_refusal(start({"--served-model-name", "a,"}), "[--served-model-name]"), "");
  expect_accepted({"--api-key", "k1,k2"}, "is one key");
  const ChildProgram program(
      {WEFT_PROGRAM, "serve", model_, "--port", "0", "--served-model-name", "a, b", "c", "--api-key", "k1,k2"}, {});
  EXPECT_EQ(names(program, "k1,k2"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(names(program, "k1").empty());
}

TEST_F(ServeFlags, RefusesWhatWouldChangeAnswers) {
  const std::vector<std::vector<std::string>> cases = {
      {"--pipeline-parallel-size", "2"},         {"--data-parallel-size", "2"},
      {"--tokenizer", folder_ / "other"},        {"--chat-template-content-format", "openai"},
      {"--hf-overrides", "{\"rope_theta\": 1}"}, {"--exclude-tools-when-tool-choice-none"}};
  for (const std::vector<std::string>& words : cases)
    EXPECT_EQ(breach_of_refusal(start(words), "[" + words[0] + "]"), "");
  EXPECT_EQ(breach_of_refusal(start({"-pp", "2"}), "[--pipeline-parallel-size]"), "");
  EXPECT_EQ(breach_of_refusal(start({"--max-model-len", "-2"}), "[max-model-len]"), "");
  EXPECT_EQ(breach_of_refusal(start({"--modell_x", "1"}), "\"--modell_x\" is not an option"), "");
  const std::string two = start({"--modell_x", "1", "--prot", "2"}).err;
  EXPECT_NE(two.find("\"--modell_x\" is not an option"), std::string::npos) << two;
  EXPECT_NE(two.find("\"--prot\" is not an option"), std::string::npos) << two;
  EXPECT_EQ(breach_of_refusal(start({"-hx"}), "\"-hx\" is not an option"), "");
  EXPECT_EQ(breach_of_refusal(start({"-nxt", "1"}), "\"-nxt\" is not an option"), "");
}

// As people write them: the recipe of a model for llama.cpp's server, and mlx-lm's.
TEST_F(ServeFlags, TakesFlagsOfOtherServers) {
  expect_accepted({"-c",
                   "64",
                   "-np",
                   "2",
                   "-ngl",
                   "99",
                   "-fa",
                   "on",
                   "--jinja",
                   "-a",
                   "name",
                   "--no-mmap",
                   "-tb",
                   "2",
                   "--temp",
                   "0.7",
                   "--top-p",
                   "0.8",
                   "--top-k",
                   "20",
                   "--min-p",
                   "0",
                   "--presence-penalty",
                   "1.5"},
                  "read here: -a as --served-model-name, -c as --max-model-len, -np as --max-num-seqs");
  expect_accepted({"--max-tokens", "100", "--log-level", "INFO", "--chat-template-args", "{}"}, "has no effect");
}

TEST_F(ServeFlags, RefusesTwoModels) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--model", "nonsense"}, {"nonsense"}}) {
    const ProgramRun run = start(words);
    EXPECT_EQ(breach_of_refusal(run, "\"nonsense\""), "");
    EXPECT_EQ(breach_of_refusal(run, model_), "");
  }
}

TEST_F(ServeFlags, FlagsWinOverTheFileInEachSpelling) {
  const std::string config = folder_ / "c.json";
  std::ofstream(config) << R"({"port": 1, "model": "nonsense", "served_model_name": ["c"], "max_model_len": -1})";
  std::vector<std::string> words{WEFT_PROGRAM, "serve", "-m", model_, "--config", config};
  words.insert(words.end(), {"--port", "0", "--served_model_name", "a", "b"});
  const ChildProgram program(words, {});
  EXPECT_EQ(names(program, ""), (std::vector<std::string>{"a", "b"}));
}

}  // namespace weft::serve_flags_test
