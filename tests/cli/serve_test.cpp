// weft serve as a program: its port, its start line, its end.

#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "base/json.h"
#include "builtin/models.h"
#include "server/http_server.h"
#include "tests/cli/child_program.h"
#include "tests/http_client.h"
#include "tests/sample_checkpoint.h"

namespace weft::serve_test {

class ServeVerb : public ::testing::Test {
 protected:
  // The port that the start line names, once it is there; 0 if the program ends instead.
  static int port_of(const ChildProgram& program) {
    static const std::string kBegin = " on http://127.0.0.1:";
    while (program.is_running()) {
      const std::string errors = program.errors();
      if (const auto at = errors.find(kBegin); at != std::string::npos && errors.find('\n', at) != std::string::npos)
        return std::stoi(errors.substr(at + kBegin.size()));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return 0;
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

TEST_F(ServeVerb, RefusesAPortThatIsTakenAndModelsThatAreNot) {
  const HttpServer taken("127.0.0.1", 0, {});
  const std::string port = std::to_string(taken.port());
  // The model is not looked at.
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", "no-such-model", "--port", port}), "[--port]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", folder_ / "nothing", "--port", "0"}), "nothing"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", model_, "--port", "65536"}), "[--port]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", model_, "--host", "nowhere.invalid", "--port", "0"}), "[--host]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"serve", model_, "--port", "0", "--api-key", ""}), "[--api-key]"), "");
}

}  // namespace weft::serve_test
