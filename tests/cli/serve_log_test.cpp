// weft serve while nothing reads its log.

#include <csignal>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "builtin/models.h"
#include "tests/cli/child_program.h"
#include "tests/http_client.h"
#include "tests/sample_checkpoint.h"

namespace weft::serve_log_test {

class ServeLog : public ::testing::Test {
 protected:
  ServeLog() {
    EXPECT_EQ(::mkfifo(pipe_path_.c_str(), 0600), 0);
    pipe_ = ::open(pipe_path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  }
  ~ServeLog() override { ::close(pipe_); }

  // The standard error of the program is the pipe.
  std::vector<std::string> words() const {
    return {"/bin/sh", "-c",   "log=$0; exec \"$@\" 2>\"$log\"", pipe_path_, WEFT_PROGRAM, "serve", model_,
            "--uds",   socket_};
  }

  bool is_ready() const {
    for (int i = 0; i < 6000; ++i) {
      try {
        if (HttpClient(socket_).get("/health").status == 200) return true;
      } catch (const std::runtime_error&) {  // it does not listen yet
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  // Fills the pipe and the queue: each request has a line of more than 200 bytes.
  void fill_log() const {
    std::string requests;
    for (int i = 0; i < 100; ++i) requests += "GET /" + std::string(200, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
    HttpClient client(socket_);
    for (int i = 0; i < 80; ++i) {
      client.send(requests);
      for (int j = 0; j < 100; ++j) ASSERT_EQ(client.receive().status, 404);
    }
  }

  // What the log has, from now on, until it has these words.
  std::string log_until(const std::string& words) const {
    std::string text;
    char buffer[4096];
    for (int i = 0; i < 6000 && text.find(words) == std::string::npos;) {
      const ssize_t count = ::read(pipe_, buffer, sizeof buffer);
      if (count > 0) {
        text.append(buffer, static_cast<std::size_t>(count));
      } else {
        ++i;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    return text;
  }

  const TemporaryFolder folder_;
  const std::string socket_ = folder_ / "weft.sock", pipe_path_ = folder_ / "log";
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::bf16);
  int pipe_ = -1;
};

TEST_F(ServeLog, ThatNothingReadsBlocksNoRequest) {
  ChildProgram program(words(), {});
  ASSERT_TRUE(is_ready());
  fill_log();
  HttpClient client(socket_);
  EXPECT_EQ(client.get("/health").status, 200);
  const ClientResponse stream =
      client.post("/v1/completions", R"({"prompt":[1,2],"max_tokens":5,"ignore_eos":true,"stream":true})");
  EXPECT_EQ(stream.status, 200);
  EXPECT_TRUE(stream.is_whole);
  const std::string log = log_until("were dropped");
  EXPECT_NE(log.find("were dropped"), std::string::npos) << "the number of lines that the log lacks";
  EXPECT_EQ(client.get("/after").status, 404);
  EXPECT_NE(log_until("/after").find("/after"), std::string::npos) << "lines are written again";
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait().status, 0);
}

TEST_F(ServeLog, ThatNothingReadsBlocksNoEnd) {
  ChildProgram program(words(), {});
  ASSERT_TRUE(is_ready());
  fill_log();
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait().status, 0);
}

}  // namespace weft::serve_log_test
