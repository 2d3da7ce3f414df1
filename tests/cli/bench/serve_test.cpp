// weft bench serve, latency and throughput, and weft run-batch, as programs with the sample model.

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "apps/cli/bench/requests.h"
#include "base/files.h"
#include "base/json.h"
#include "builtin/models.h"
#include "tests/certificates.h"
#include "tests/cli/child_program.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"
#include "tests/sample_lora.h"

namespace weft::bench_serve_test {

class BenchServe : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  Json read(const std::string& name) const { return parse_json(read_file(folder_ / name, 1 << 20)); }

  const TemporaryFolder folder_;
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::bf16);
};

TEST_F(BenchServe, ThroughputCountsAllTokens) {
  const ProgramRun run = run_weft({"bench", "throughput", model_, "--input-len", "5", "--output-len", "4",
                                   "--num-prompts", "6", "--output-json", folder_ / "out.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("Throughput: ")) << run.out;
  EXPECT_NE(run.err.find("[bench throughput] 6 requests: 30 tokens of prompts, 24 tokens to generate\n"),
            std::string::npos)
      << run.err;
  EXPECT_NE(run.out.find("Total num prompt tokens:  30\nTotal num output tokens:  24\n"), std::string::npos) << run.out;
  const Json json = read("out.json");
  EXPECT_EQ(json["num_requests"], 6);
  EXPECT_EQ(json["total_num_tokens"], 54);
  EXPECT_DOUBLE_EQ(json["tokens_per_second"].get<double>() / json["requests_per_second"].get<double>(), 9);
  EXPECT_EQ(breach_of_refusal(run_weft({"bench", "throughput", model_, "--input-len", "100000"}), "[--output-len]"),
            "");
  EXPECT_EQ(breach_of_refusal(run_weft({"bench", "throughput", model_, "--input-len", "0"}), "[--input-len]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"bench", "throughput", model_, "--dataset-name", "no"}), "[--dataset-name]"),
            "");
}

TEST_F(BenchServe, LatencyMeasuresIterations) {
  const ProgramRun run =
      run_weft({"bench", "latency", model_, "--input-len", "5", "--output-len", "3", "--batch-size", "2", "--n", "2",
                "--num-iters", "4", "--num-iters-warmup", "1", "--output-json", folder_ / "out.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("Avg latency: ")) << run.out;
  EXPECT_NE(run.out.find("\n99% percentile latency: "), std::string::npos) << run.out;
  EXPECT_EQ(read("out.json")["latencies"].size(), 4U);
  EXPECT_EQ(read("out.json")["percentiles"].size(), 6U);
  EXPECT_EQ(breach_of_refusal(run_weft({"bench", "latency", model_, "--num-iters", "0"}), "[--num-iters]"), "");
}

TEST_F(BenchServe, ServesItselfAndMeasuresStreams) {
  write("model/chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  for (const std::string backend : {"openai", "openai-chat"}) {
    const ProgramRun run = run_weft({"bench",
                                     "serve",
                                     model_,
                                     "--backend",
                                     backend,
                                     "--random-input-len",
                                     "5",
                                     "--random-output-len",
                                     "4",
                                     "--num-prompts",
                                     "7",
                                     "--max-concurrency",
                                     "3",
                                     "--request-rate",
                                     "1000",
                                     "--save-result",
                                     "--save-detailed",
                                     "--result-dir",
                                     folder_ / "results",
                                     "--result-filename",
                                     backend + ".json",
                                     "--metadata",
                                     "a=b",
                                     "--num-warmups",
                                     "1"});
    ASSERT_EQ(run.status, 0) << run.err << run.out;
    const Json json = read("results/" + backend + ".json");
    EXPECT_EQ(json["completed"], 7);
    EXPECT_EQ(json["a"], "b");
    EXPECT_EQ(json["total_output_tokens"], 28);
    if (backend == "openai") {
      EXPECT_EQ(json["input_lens"], Json(std::vector<int>(7, 5)));
    }
    for (std::size_t i = 0; i < 7; ++i) {
      // An event for each of 4 tokens; a chat begins with one of the role.
      EXPECT_EQ(json["itls"][i].size(), backend == "openai" ? 3U : 4U) << backend;
      EXPECT_GT(json["ttfts"][i].get<double>(), 0);
    }
    const auto starts = json["start_times"].get<std::vector<double>>(),
               latencies = json["latencies"].get<std::vector<double>>();
    for (const double time : starts) {
      int open = 0;
      for (std::size_t i = 0; i < 7; ++i)
        if (starts[i] <= time && time < starts[i] + latencies[i]) ++open;
      EXPECT_LE(open, 3) << backend;
    }
  }
}

TEST_F(BenchServe, ServesAModelWhosePathIsNotUtf8) {
  const std::string path = folder_ / "non\xFF\xFEutf";
  std::filesystem::create_directory_symlink(model_, path);
  const ProgramRun run =
      run_weft({"bench", "serve", path, "--random-input-len", "5", "--random-output-len", "4", "--num-prompts", "2"});
  EXPECT_EQ(run.status, 0) << run.err << run.out;
}

// The authorities of the system are those of a file that OpenSSL takes from a variable.
TEST_F(BenchServe, VerifiesServersInTls) {
  const CertificateAuthority authority("authority");
  const std::string certificate = folder_ / "server.pem", trusted = folder_ / "trusted.pem";
  authority.sign("server", certificate, certificate);
  authority.write(trusted);
  ChildProgram server({WEFT_PROGRAM, "serve", model_, "--port", "0", "--ssl-certfile", certificate}, {});
  ASSERT_TRUE(server.has_written("prefix cache ")) << server.errors();
  const std::string errors = server.errors(), begin = "https://127.0.0.1:";
  ASSERT_NE(errors.find(begin), std::string::npos) << errors;
  const std::string port = std::to_string(std::stoi(errors.substr(errors.find(begin) + begin.size())));
  const auto run = [&](const std::string& url, const std::string& file, std::vector<std::string> more) {
    std::vector<std::string> words{
        WEFT_PROGRAM,          "bench", "serve",         model_, "--base-url", url, "--random-input-len", "5",
        "--random-output-len", "4",     "--num-prompts", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return ChildProgram(words, {{"SSL_CERT_FILE", file}, {"WEFT_DISABLE_COMPILE_CACHE", "1"}}).wait();
  };
  const ProgramRun verified = run("https://localhost:" + port, trusted, {});
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_EQ(run("https://127.0.0.1:" + port, trusted, {}).status, 0);
  const ProgramRun unknown = run("https://localhost:" + port, "", {});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("the certificate: "), std::string::npos) << unknown.err;
  authority.sign("server", certificate, certificate, {.hosts = "DNS:elsewhere.invalid"});
  server.send_signal(SIGHUP);
  ASSERT_TRUE(server.has_written("read again")) << server.errors();
  const ProgramRun other = run("https://localhost:" + port, trusted, {});
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("hostname mismatch"), std::string::npos) << other.err;
  EXPECT_EQ(run("https://localhost:" + port, "", {"--insecure"}).status, 0);
  const ProgramRun plain = run("http://localhost:" + port, trusted, {"--insecure"});
  EXPECT_EQ(plain.status, 1);
  EXPECT_NE(plain.err.find("https://"), std::string::npos) << plain.err;
  EXPECT_NE(plain.err.find("[--insecure] has no effect"), std::string::npos) << plain.err;
}

TEST_F(BenchServe, ReportsFailedRequests) {
  const ProgramRun run = run_weft({"bench", "serve", model_, "--random-input-len", "5", "--random-output-len", "4",
                                   "--num-prompts", "2", "--extra-body", R"({"temperature":9})"});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.out.find("Failed requests:                         2"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("temperature"), std::string::npos) << run.err;
  const ProgramRun none = run_weft({"bench", "serve", model_, "--port", "1", "--random-input-len", "5",
                                    "--random-output-len", "4", "--num-prompts", "2"});
  EXPECT_EQ(none.status, 1) << "no server listens there";
  EXPECT_NE(none.err.find("connecting to 127.0.0.1:1: "), std::string::npos) << none.err;
}

TEST_F(BenchServe, TakesListsAndPrintsItsResultsAsJson) {
  const ProgramRun run =
      run_weft({"bench", "serve", model_, "--random-input-len", "5", "--random-output-len", "4", "--num-prompts", "2",
                "--goodput", "ttft:100000", "tpot:100000", "--metadata", "a=b", "c=d", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out);
  EXPECT_EQ(json["completed"], 2);
  EXPECT_EQ(json["a"], "b");
  EXPECT_EQ(json["c"], "d");
  EXPECT_GT(json["request_goodput"], 0);
}

TEST_F(BenchServe, RefusesFlagsThatAreWrong) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--backend", "tgi"}, "[--backend]"},
      {{"--request-rate", "0"}, "[--request-rate]"},
      {{"--burstiness", "0"}, "[--burstiness]"},
      {{"--percentile-metrics", "ttfb"}, "[--percentile-metrics]"},
      {{"--goodput", "itl:5"}, "[--goodput]"},
      {{"--goodput", "ttft"}, "[--goodput]"},
      {{"--base-url", "ftp://localhost"}, "[--base-url]"},
      {{"--base-url", "https://host.invalid"}, "[--base-url]"},
      {{"--extra-body", "[]"}, "[--extra-body]"},
      {{"--random-range-ratio", "1"}, "[--random-range-ratio]"},
      {{"--dataset-name", "custom"}, "[--dataset-path]"},
  };
  for (const auto& [flags, part] : cases) {
    std::vector<std::string> words = {"bench", "serve", model_};
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_EQ(breach_of_refusal(run_weft(words), part), "") << part;
  }
}

// vLLM's names for what there is.
TEST_F(BenchServe, TakesFlagsOfVllm) {
  const std::vector<std::string> serve{"bench", "serve",         model_, "--input-len", "5", "--output-len",
                                       "4",     "--num-prompts", "2"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return run_weft(words);
  };
  const ProgramRun run =
      with(serve, {"--endpoint-type", "openai", "--disable-tqdm", "--trust-remote-code", "--logprobs", "2",
                   "--frequency-penalty", "1", "--random-range-ratio", "{\"input\":0,\"output\":0}", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(parse_json(run.out)["total_input_tokens"], 10);
  EXPECT_EQ(parse_json(run.out)["total_output_tokens"], 8);
  EXPECT_NE(run.err.find("[--disable-tqdm] is accepted but has no effect"), std::string::npos) << run.err;
  EXPECT_NE(with(serve, {"--logprobs", "50"}).err.find("logprobs"), std::string::npos) << "the server gets it";
  EXPECT_NE(with(serve, {"--repetition-penalty", "0"}).err.find("repetition_penalty"), std::string::npos);
  for (const std::string flag : {"--plot-timeline", "--use-beam-search", "--profile"})
    EXPECT_EQ(breach_of_refusal(with(serve, {flag}), "[" + flag + "]"), "") << flag;
  for (const std::string flag : {"--ramp-up-strategy", "--lora-assignment", "--hf-subset", "--probe-request-rate"})
    EXPECT_EQ(breach_of_refusal(with(serve, {flag, "linear"}), "[" + flag + "]"), "") << flag;
  EXPECT_EQ(with(serve, {"--help"}).out.find("--hf-subset"), std::string::npos) << "the help has what there is";
  const ProgramRun engine =
      run_weft({"bench", "throughput", model_, "--backend", "vllm", "--random-input-len", "5", "--random-output-len",
                "4", "--num-prompts", "3", "--n", "2", "--num-warmups", "1", "--async-engine"});
  ASSERT_EQ(engine.status, 0) << engine.err;
  EXPECT_NE(engine.out.find("prompt tokens:  15\nTotal num output tokens:  24\n"), std::string::npos) << engine.out;
  EXPECT_EQ(breach_of_refusal(run_weft({"bench", "throughput", model_, "--backend", "hf"}), "[--backend]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"bench", "latency", model_, "--use-beam-search"}), "[--use-beam-search]"), "");
}

TEST_F(BenchServe, UrlOfServerWinsAndRequestsHaveIds) {
  ChildProgram server({WEFT_PROGRAM, "serve", model_, "--port", "0", "--enable-log-requests"},
                      {{"WEFT_DISABLE_COMPILE_CACHE", "1"}});
  ASSERT_TRUE(server.has_written("prefix cache ")) << server.errors();
  const std::string errors = server.errors(), begin = "http://127.0.0.1:";
  const std::string port = std::to_string(std::stoi(errors.substr(errors.find(begin) + begin.size())));
  const ProgramRun run = run_weft({"bench", "serve", model_, "--base-url", begin + port, "--port", "1", "--input-len",
                                   "5", "--output-len", "4", "--num-prompts", "2", "--request-id-prefix", "bench-"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("[--host, --port] have no effect"), std::string::npos) << run.err;
  EXPECT_TRUE(server.has_written("request bench-0:")) << server.errors();
  EXPECT_TRUE(server.has_written("request bench-1:")) << server.errors();
}

TEST_F(BenchServe, TakesTheFirstModelThatTheServerLists) {
  ChildProgram server(
      {WEFT_PROGRAM, "serve", model_, "--port", "0", "--served-model-name", "first", "second", "--api-key", "secret"},
      {{"WEFT_DISABLE_COMPILE_CACHE", "1"}});
  ASSERT_TRUE(server.has_written("prefix cache ")) << server.errors();
  const std::string errors = server.errors(), begin = "http://127.0.0.1:";
  const std::string port = std::to_string(std::stoi(errors.substr(errors.find(begin) + begin.size())));
  const std::vector<std::string> words{"bench",        "serve", "--port",        port, "--input-len", "5",
                                       "--output-len", "4",     "--num-prompts", "2",  "--json"};
  std::vector<std::string> with_key = words;
  with_key.insert(with_key.end(), {"--header", "Authorization=Bearer secret"});
  const ProgramRun run = run_weft(with_key);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("\"first\""), std::string::npos) << run.err;
  EXPECT_EQ(parse_json(run.out)["completed"], 2);
  EXPECT_EQ(parse_json(run.out)["model_id"], model_);
  EXPECT_EQ(breach_of_refusal(run_weft(words), "[--model]"), "") << "the server wants a key";
  EXPECT_EQ(breach_of_refusal(run_weft({"bench", "serve", "--port", "1"}),
                              "[--model] is not given, and /v1/models cannot be read: connecting to 127.0.0.1:1: "),
            "")
      << "nothing listens there";
}

TEST_F(BenchServe, RequestsAreTheSameForASeed) {
  DatasetArguments arguments{.count = 20};
  arguments.random = {.input_len = 10, .output_len = 6, .prefix_len = 2, .input_ratio = 0.5, .output_ratio = 0.5};
  const auto first = bench_requests(arguments, {.tokenizer = nullptr, .size = 50});
  const auto again = bench_requests(arguments, {.tokenizer = nullptr, .size = 50});
  ASSERT_EQ(first.size(), 20U);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].ids, again[i].ids);
    EXPECT_EQ(first[i].ids[0], first[0].ids[0]);
    EXPECT_EQ(first[i].ids[1], first[0].ids[1]);
    EXPECT_GE(first[i].ids.size(), 7U);
    EXPECT_LE(first[i].ids.size(), 17U);
    EXPECT_GE(first[i].output_tokens, 3);
    EXPECT_LE(first[i].output_tokens, 9);
  }
  arguments.seed = 1;
  EXPECT_NE(bench_requests(arguments, {.tokenizer = nullptr, .size = 50})[0].ids, first[0].ids);
}

TEST_F(BenchServe, ReadsDatasets) {
  const std::string custom =
      write("custom.jsonl", "{\"prompt\": \"hi there\"}\n\n{\"prompt\": \"hi\", \"output_tokens\": 3}\n");
  const ProgramRun run = run_weft({"bench", "throughput", model_, "--dataset-name", "custom", "--dataset-path", custom,
                                   "--custom-output-len", "2", "--num-prompts", "3"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("Total num output tokens:  6\n"), std::string::npos) << "2 for each: " << run.out;
  const auto requests = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"bench", "throughput", model_, "--dataset-name", "custom", "--dataset-path", custom};
    words.insert(words.end(), more.begin(), more.end());
    return run_weft(words);
  };
  EXPECT_NE(requests({"--output-len", "4", "--num-prompts", "9", "--no-oversample"}).out.find("output tokens:  8\n"),
            std::string::npos);
  EXPECT_EQ(breach_of_refusal(requests({"--custom-output-len", "-1"}), "line 1"), "") << "it has no number";
  write("custom.jsonl", "{\"prompt\": \"hi\", \"output_tokens\": 3}\n");
  EXPECT_NE(requests({"--num-prompts", "2"}).out.find("output tokens:  6\n"), std::string::npos);
  const std::string talk =
      R"({"conversations":[{"value":"hi there you"},{"value":"hi there you too"}]},{"conversations":[]},5)";
  const std::string shared = write("shared.json", "[" + talk + "]");
  const ProgramRun chats = run_weft({"bench", "throughput", model_, "--dataset-name", "sharegpt", "--dataset-path",
                                     shared, "--sharegpt-output-len", "2", "--num-prompts", "2"});
  ASSERT_EQ(chats.status, 0) << chats.err;
  EXPECT_NE(chats.out.find("Total num output tokens:  4\n"), std::string::npos) << chats.out;
  const std::string wrong = write("wrong.jsonl", "{\"text\": 1}\n");
  EXPECT_EQ(
      breach_of_refusal(run_weft({"bench", "throughput", model_, "--dataset-name", "custom", "--dataset-path", wrong}),
                        "line 1"),
      "");
}

TEST_F(BenchServe, RunBatchReadsAndWritesFiles) {
  const std::string good =
      R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"hi","max_tokens":2}})";
  const std::string in = write("in.jsonl", good + "\n");
  const ProgramRun run = run_weft({"run-batch", "-i", in, "-o", folder_ / "out.jsonl", "--model", model_});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(read("out.jsonl")["response"]["body"]["usage"]["completion_tokens"], 2);
  const ProgramRun piped = run_weft({"run-batch", "-i", "-", "-o", "-", "--model", model_}, good + "\n{\n");
  EXPECT_EQ(piped.status, 1) << "one line failed";
  EXPECT_EQ(std::count(piped.out.begin(), piped.out.end(), '\n'), 2);
  EXPECT_EQ(
      breach_of_refusal(run_weft({"run-batch", "-i", folder_ / "none", "-o", "-", "-m", model_}), "[--input-file]"),
      "");
  EXPECT_EQ(breach_of_refusal(run_weft({"run-batch", "-i", in, "-o", in, "-m", model_}), "[--output-file]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"run-batch", "-i", in, "-o", folder_ / "out.jsonl", "-m", model_,
                                        "--chat-template-kwargs", "[]"}),
                              "[--chat-template-kwargs]"),
            "");
  EXPECT_TRUE(read("out.jsonl").is_object()) << "flags are checked before the file is written";
  EXPECT_EQ(read_file(in, 1000), good + "\n");
}

TEST_F(BenchServe, NamesAdaptersAsModels) {
  const std::vector<std::string> adapters{"a", "b=c/d"};
  EXPECT_EQ(models_of_requests(adapters, "round-robin", 1, "m", 3), (std::vector<std::string>{"a", "b", "a"}));
  const std::vector<std::string> drawn = models_of_requests(adapters, "random", 1, "m", 50);
  EXPECT_EQ(drawn, models_of_requests(adapters, "random", 1, "m", 50));
  EXPECT_GT(std::count(drawn.begin(), drawn.end(), "a"), 10);
  EXPECT_GT(std::count(drawn.begin(), drawn.end(), "b"), 10);
  const ModelDefinition model = make_model_registry().find("llama", "test");
  const std::string adapter =
      SampleLora(model, SampleCheckpoint(model), names_of_linear_layers(), {}).write_folder(folder_, "adapter");
  const std::vector<std::string> words{
      "bench", "serve",         model_, "--random-input-len", "5", "--random-output-len",
      "4",     "--num-prompts", "6",    "--lora-modules"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run_weft(more);
  };
  const ProgramRun run = with({"one=" + adapter, "two=" + adapter, "--lora-assignment", "round-robin", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(parse_json(run.out)["completed"], 6);
  EXPECT_EQ(breach_of_refusal(with({"one=" + adapter, "--lora-assignment", "all"}), "[--lora-assignment]"), "");
  EXPECT_EQ(breach_of_refusal(with({"one=" + adapter, "--port", "1"}), "[--lora-modules]"), "");
}

}  // namespace weft::bench_serve_test
