// weft serve as a program: its port, its start line, its end.

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/json.h"
#include "builtin/models.h"
#include "server/http_server.h"
#include "tests/certificates.h"
#include "tests/cli/child_program.h"
#include "tests/http_client.h"
#include "tests/sample_checkpoint.h"
#include "tests/tls_client.h"

namespace weft::serve_test {

class ServeVerb : public ::testing::Test {
 protected:
  // The port that the start line names, once it is there; 0 if the program ends instead.
  static int port_of(const ChildProgram& program, const std::string& scheme = "http") {
    const std::string begin = " on " + scheme + "://127.0.0.1:";
    if (!program.has_written("prefix cache ")) return 0;  // after the port
    const std::string errors = program.errors();
    const auto at = errors.find(begin);
    return at == std::string::npos ? 0 : std::stoi(errors.substr(at + begin.size()));
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  const TemporaryFolder folder_;
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::bf16);
};

TEST_F(ServeVerb, EndsWithStatusZeroAtASignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ChildProgram program({WEFT_PROGRAM, "serve", model_, "--port", "0", "--served-model-name", "sample"},
                         {{"WEFT_API_KEY", "secret"}});
    const int port = port_of(program);
    ASSERT_NE(port, 0) << program.errors();
    {
      HttpClient client(port);
      EXPECT_EQ(client.get("/v1/models").status, 401);
      const ClientResponse answer =
          client.post("/v1/completions", R"({"model":"sample","prompt":[1,2],"max_tokens":3,"temperature":0})",
                      "Authorization: Bearer secret\r\n");
      EXPECT_EQ(answer.status, 200) << answer.body;
    }
    program.send_signal(signal);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find("serving sample on http"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("POST \"/v1/completions\" 200"), std::string::npos) << run.err;
  }
}

// max_new_tokens of the model is what a request without a length gets; that of an override bounds all.
TEST_F(ServeVerb, LimitsAnswersAsTheGenerationConfigSays) {
  write("model/generation_config.json", R"({"max_new_tokens": 5})");
  const auto counts = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{WEFT_PROGRAM, "serve", model_, "--port", "0"};
    words.insert(words.end(), more.begin(), more.end());
    ChildProgram program(words, {});
    const int port = port_of(program);
    EXPECT_NE(port, 0) << program.errors();
    HttpClient client(port);
    const std::string asked = R"({"prompt":[1,2],"ignore_eos":true)";
    std::vector<int> counts;
    for (const char* length : {"}", ",\"max_tokens\":9}"})
      counts.push_back(parse_json(client.post("/v1/completions", asked + length).body)["usage"]["completion_tokens"]);
    counts.push_back(parse_json(client.post("/completion", asked + "}").body)["tokens_predicted"]);
    return counts;
  };
  EXPECT_EQ(counts({}), (std::vector<int>{16, 9, 5})) << "completions have OpenAI's default";
  EXPECT_EQ(counts({"--override-generation-config", R"({"max_new_tokens":3})"}), (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(counts({"--generation-config", model_}), (std::vector<int>{5, 5, 5})) << "a folder that is named";
  EXPECT_EQ(counts({"-n", "7"}), (std::vector<int>{7, 9, 7})) << "of requests that name no length";
}

// Both kinds of requests: each has defaults of its own, which the command line replaces.
TEST_F(ServeVerb, HasTheDefaultsOfSamplingThatAreGiven) {
  ChildProgram program({WEFT_PROGRAM, "serve", model_, "--port", "0", "--temp", "0", "--top-k", "3"}, {});
  HttpClient client(port_of(program));
  const Json settings = parse_json(client.get("/props").body)["default_generation_settings"]["params"];
  EXPECT_EQ(settings["temperature"], 0.0);
  EXPECT_EQ(settings["top_k"], 3);
  EXPECT_EQ(settings["top_p"], 0.95) << "llama.cpp's, as it is not given";
  const char* body = R"({"prompt":[1,2],"max_tokens":4,"ignore_eos":true})";
  const Json text = parse_json(client.post("/v1/completions", body).body)["choices"][0]["text"];
  const char* greedy = R"({"prompt":[1,2],"max_tokens":4,"ignore_eos":true,"temperature":0})";
  EXPECT_EQ(parse_json(client.post("/v1/completions", greedy).body)["choices"][0]["text"], text);
}

TEST_F(ServeVerb, RefusesAPortThatIsTakenAndModelsThatAreNot) {
  const HttpServer taken("127.0.0.1", 0, {});
  const std::string port = std::to_string(taken.port());
  // The model is not looked at.
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", "no-such-model", "--port", port}), "[--port]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", folder_ / "nothing", "--port", "0"}), "nothing"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", model_, "--port", "65536"}), "[--port]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", model_, "--host", "nowhere.invalid", "--port", "0"}), "[--host]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", model_, "--port", "0", "--api-key", ""}), "[--api-key]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", model_, "--port", "0", "--root-path", "x"}), "[--root-path]"), "");
  const std::string damaged = write("damaged.gguf", "GGUF, but nothing more");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", damaged, "--port", "0"}), "damaged.gguf"), "");
}

TEST_F(ServeVerb, HasARootPathAndKeys) {
  ChildProgram program(
      {WEFT_PROGRAM, "serve", model_, "--port", "0", "--root-path", "/x/", "--api-key", "one", "--api-key", "two"},
      {{"WEFT_API_KEY", "three"}});
  const int port = port_of(program);
  ASSERT_NE(port, 0) << program.errors();
  HttpClient client(port);
  EXPECT_EQ(client.get("/x/health").status, 200);
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(client.get("/x/v1/models").status, 401);
  EXPECT_EQ(client.get("/x/v1/models", "Authorization: Bearer two\r\n").status, 200);
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer one\r\n").status, 200);
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer three\r\n").status, 401) << "the flag wins";
}

TEST_F(ServeVerb, TakesListsVllmsFlagsAndAFileOfFlags) {
  const std::string config = write(
      "c.json",
      R"({"port": 1, "api_key": ["one", "two"], "slots": true, "enable_prefix_caching": false, "max_num_seqs": 7,)"
      R"( "no_webui": false, "default_chat_template_kwargs": {"a": 1}, "fingerprint_mode": "custom",)"
      R"( "fingerprint_value": "mine"})");
  ChildProgram program(
      {WEFT_PROGRAM, "serve", model_, "--served-model-name", "a", "b", "--config", config, "--port", "1", "--port", "0",
       "--gpu-memory-utilization", "0.9", "--swap-space", "4", "--trust-remote-code", "--no-enable-chunked-prefill"},
      {});
  const int port = port_of(program);
  ASSERT_NE(port, 0) << program.errors();
  HttpClient client(port);
  const std::string key = "Authorization: Bearer two\r\n";
  EXPECT_EQ(client.get("/v1/models").status, 401);
  EXPECT_EQ(parse_json(client.get("/v1/models", key).body)["data"].size(), 2U);
  EXPECT_EQ(parse_json(client.get("/slots", key).body).size(), 7U);
  const Json answer =
      parse_json(client.post("/v1/completions", R"({"model":"b","prompt":[1,2],"max_tokens":1})", key).body);
  EXPECT_EQ(answer["system_fingerprint"], "mine");
  const std::string said = program.errors();
  for (const char* part : {"[--gpu-memory-utilization] is accepted but has no effect: --kv-cache-memory-bytes",
                           "[--swap-space]", "[--trust-remote-code]", "[--enable-chunked-prefill]", "prefix cache off"})
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

TEST_F(ServeVerb, RefusesFlagsThatAskForWhatIsNotThere) {
  const auto refused = [&](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), {"serve", model_, "--port", "0"});
    EXPECT_EQ(breach_of_refusal(run_weft(words), part), "");
  };
  refused({"--pipeline-parallel-size", "2"}, "[--pipeline-parallel-size] must be 1");
  refused({"--runner", "draft"}, "[--runner] must be auto");
  refused({"--fingerprint-mode", "custom"}, "[--fingerprint-value]");
  refused({"--fingerprint-mode", "x"}, "[--fingerprint-mode] must be full, hash, custom or none");
  refused({"--stream-stall-timeout", "0"}, "[--stream-stall-timeout]");
  refused({"--config", write("list.json", "[]")}, "[--config]");
  refused({"--config", write("broken.yaml", "port: 1\n  host: x")}, "broken.yaml] is not YAML: line 2");
  refused({"--config", write("unknown.yaml", "prot: 1")}, "\"--prot\" is not an option");
  refused({"--config", write("unknown.json", R"({"prot": 1})")}, "\"--prot\" is not an option");
  refused({"--config"}, "[--config]");
}

TEST_F(ServeVerb, ReplacesTheSocketOfAServerThatWasKilled) {
  const std::string path = folder_ / "weft.sock";
  const std::vector<std::string> words{WEFT_PROGRAM, "serve", model_, "--uds", path};
  {
    ChildProgram killed(words, {});
    ASSERT_TRUE(killed.has_written("serving ")) << killed.errors();
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  ChildProgram program(words, {});
  ASSERT_TRUE(program.has_written("serving ")) << program.errors();
  EXPECT_EQ(HttpClient(path).get("/health").status, 200);
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", "no-such-model", "--uds", path}), "[--uds]"), "");
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait().status, 0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ServeVerb, ReadsCertificatesAgainAtAHangUp) {
  const CertificateAuthority authority("authority");
  const std::string certificate = folder_ / "server.pem", key = folder_ / "server.key";
  authority.sign("first", certificate, key);
  ChildProgram program(
      {WEFT_PROGRAM, "serve", model_, "--port", "0", "--ssl-certfile", certificate, "--ssl-keyfile", key}, {});
  const int port = port_of(program, "https");
  ASSERT_NE(port, 0) << program.errors();
  TlsClient client(port);
  EXPECT_EQ(client.server_name(), "first");
  authority.sign("second", certificate, key);
  program.send_signal(SIGHUP);
  ASSERT_TRUE(program.has_written("read again: ")) << program.errors();
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(TlsClient(port).server_name(), "second");
  write("server.key", "no key");
  program.send_signal(SIGHUP);
  ASSERT_TRUE(program.has_written("server.key\" has none; the certificate that was read before stays"));
  EXPECT_EQ(TlsClient(port).server_name(), "second");
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait().status, 0);
}

TEST_F(ServeVerb, GoesOnAtAHangUpWithoutCertificates) {
  ChildProgram program({WEFT_PROGRAM, "serve", model_, "--port", "0"}, {});
  const int port = port_of(program);
  ASSERT_NE(port, 0) << program.errors();
  program.send_signal(SIGHUP);
  ASSERT_TRUE(program.has_written("SIGHUP changes nothing")) << program.errors();
  EXPECT_EQ(HttpClient(port).get("/health").status, 200);
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait().status, 0);
}

TEST_F(ServeVerb, RefusesCertificatesBeforeTheModel) {
  const CertificateAuthority authority("authority");
  authority.sign("one", folder_ / "one.pem", folder_ / "one.key");
  authority.sign("two", folder_ / "two.pem", folder_ / "two.key");
  const auto refusal = [&](const std::vector<std::string>& flags, const std::string& part) {
    std::vector<std::string> words{"serve", "no-such-model", "--port", "0"};
    words.insert(words.end(), flags.begin(), flags.end());
    return breach_of_refusal(run_weft(words), part);
  };
  const std::string pem = folder_ / "one.pem", key = folder_ / "one.key";
  EXPECT_EQ(refusal({"--ssl-certfile", folder_ / "none.pem", "--ssl-keyfile", key}, "none.pem"), "");
  EXPECT_EQ(refusal({"--ssl-certfile", pem}, "[--ssl-keyfile]"), "");
  EXPECT_EQ(refusal({"--ssl-certfile", pem, "--ssl-keyfile", folder_ / "two.key"}, "two.key"), "");
  EXPECT_EQ(refusal({"--ssl-keyfile", key}, "[--ssl-certfile]"), "");
  EXPECT_EQ(refusal({"--ssl-cert-reqs", "2"}, "[--ssl-certfile]"), "");
  EXPECT_EQ(refusal({"--ssl-certfile", pem, "--ssl-keyfile", key, "--ssl-cert-reqs", "2"}, "--ssl-ca-certs"), "");
  EXPECT_EQ(refusal({"--ssl-certfile", pem, "--ssl-keyfile", key, "--ssl-cert-reqs", "3"}, "[--ssl-cert-reqs]"), "");
  EXPECT_EQ(refusal({"--ssl-certfile", pem, "--ssl-keyfile", key, "--uds", folder_ / "socket"}, "--uds"), "");
}

}  // namespace weft::serve_test
