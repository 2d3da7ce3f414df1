// Batches of requests: results in the order of the lines, with the answers of the server.

#include "server/batch_run.h"

#include <sstream>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/engine/tiny_model.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"
#include "tests/thrown_message.h"

namespace weft::batch_run_test {

std::string line(const std::string& id, const std::string& body, const std::string& url = "/v1/completions") {
  return R"({"custom_id":")" + id + R"(","method":"POST","url":")" + url + R"(","body":)" + body + "}\n";
}

struct Batch {
  std::vector<Json> results;
  BatchRun::Counts counts;
};

class BatchRunTest : public ::testing::Test {
 protected:
  Batch run(const std::string& text, const RunningServer& beside) {
    std::istringstream in(text);
    std::ostringstream out;
    Batch batch;
    batch.counts = run(in, out, beside);
    std::istringstream written(out.str());
    for (std::string one; std::getline(written, one);) batch.results.push_back(parse_json(one));
    return batch;
  }
  BatchRun::Counts run(std::istream& in, std::ostream& out, const RunningServer& beside) {
    const auto engine = tiny_engine(beside.model_path(), {{"max-num-seqs", "3"}, {"max-num-batched-tokens", "16"}});
    ServedModel model =
        make_served_model(*engine, {.names = {"tiny"}, .root = "tiny.gguf", .chat_template = beside.template_path()});
    if (dialect_ != nullptr) model.dialect = dialect_;
    return BatchRun(*engine, model, in, out, [this](const std::string& said) { log_.push_back(said); }).run();
  }

  std::vector<std::string> log_;
  const ToolDialect* dialect_ = nullptr;  // instead of the model's
};

TEST_F(BatchRunTest, AnswersAsTheServerDoes) {
  RunningServer server;
  std::string text;
  std::vector<std::pair<std::string, std::string>> asked;
  for (int i = 0; i < 9; ++i) {
    const std::string body = R"({"prompt":")" + std::string(static_cast<std::size_t>(3 * i + 1), 'a') +
                             R"(","max_tokens":)" + std::to_string(20 - 2 * i) +
                             R"(,"ignore_eos":true,"temperature":0.8,"n":2,"seed":)" + std::to_string(i) + "}";
    asked.emplace_back("/v1/completions", body);
  }
  asked.emplace_back("/v1/chat/completions",
                     R"({"messages":[{"role":"user","content":"ab"}],"max_tokens":5,"temperature":0})");
  asked.emplace_back("/v1/completions", R"({"prompt":"ab","max_tokens":0,"echo":true})");
  for (std::size_t i = 0; i < asked.size(); ++i) text += line(std::to_string(i), asked[i].second, asked[i].first);
  const Batch batch = run(text, server);
  ASSERT_EQ(batch.results.size(), asked.size());
  EXPECT_EQ(batch.counts.failed, 0);
  HttpClient client(server.port());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Json& result = batch.results[i];
    EXPECT_EQ(result["custom_id"], std::to_string(i)) << "in the order of the lines";
    EXPECT_EQ(result["error"], nullptr);
    EXPECT_EQ(result["response"]["status_code"], 200);
    EXPECT_TRUE(result["id"].get<std::string>().starts_with("weft-"));
    EXPECT_TRUE(result["response"]["request_id"].get<std::string>().starts_with("weft-batch-"));
    const Json wanted = parse_json(client.post(asked[i].first, asked[i].second).body);
    const Json& body = result["response"]["body"];
    EXPECT_EQ(body["choices"], wanted["choices"]) << i;
    EXPECT_EQ(body["usage"], wanted["usage"]);
    EXPECT_EQ(body["object"], wanted["object"]);
  }
}

TEST_F(BatchRunTest, WritesALineForEachErrorAndGoesOn) {
  RunningServer server;
  const std::string good = R"({"prompt":"a","max_tokens":2,"temperature":0,"no_such_field":1})";
  const Batch batch =
      run("{nonsense\n\n" + line("stream", R"({"prompt":"a","stream":true})") + line("url", good, "/v1/images") +
              line("range", R"({"prompt":"a","temperature":9})") + R"({"custom_id":5,"method":"POST"})" + "\n" +
              R"({"custom_id":"get","method":"GET","url":"/v1/completions","body":{}})" + "\n" +
              R"({"custom_id":"body","method":"POST","url":"/v1/completions","body":[]})" + "\n" + line("good", good),
          server);
  ASSERT_EQ(batch.results.size(), 8U);
  EXPECT_EQ(batch.counts.lines, 8);
  EXPECT_EQ(batch.counts.failed, 7);
  EXPECT_EQ(batch.results[0]["custom_id"], nullptr);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(batch.results[i]["response"]["status_code"], 400) << i;
    EXPECT_EQ(batch.results[i]["response"]["body"], nullptr) << i;
    EXPECT_NE(batch.results[i]["error"], nullptr) << i;
  }
  const std::string urls = batch.results[2]["error"];
  EXPECT_NE(urls.find("/v1/chat/completions"), std::string::npos) << "the paths that there are";
  EXPECT_EQ(batch.results[3]["error"]["error"]["param"], "temperature") << "the body of the server's error";
  EXPECT_EQ(batch.results[5]["custom_id"], "get");
  EXPECT_EQ(batch.results[7]["response"]["status_code"], 200);
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_NE(log_[0].find("no_such_field"), std::string::npos);
}

TEST_F(BatchRunTest, NamesTheLinesThatAreWrong) {
  RunningServer server;
  const std::string mark = "\xEF\xBB\xBF";
  const Batch batch = run(mark + line("first", R"({"prompt":"a","max_tokens":1})") + "\nnot json\n[1]\n" + mark +
                              "{}\n" + line("stream", R"({"prompt":"a","stream":true})"),
                          server);
  ASSERT_EQ(batch.results.size(), 5U);
  EXPECT_EQ(batch.results[0]["response"]["status_code"], 200) << "editors put a mark at the start of a file";
  for (std::size_t i = 1; i < 5; ++i) {
    const std::string error = batch.results[i]["error"];
    EXPECT_TRUE(error.starts_with("line " + std::to_string(i + 2) + ": ")) << "line 2 is empty: " << error;
    EXPECT_EQ(error.find("the body"), std::string::npos) << "a member of lines has this name: " << error;
  }
}

// Has a text, and cannot be read after it.
class FailingInput final : public std::stringbuf {
 public:
  using std::stringbuf::stringbuf;

 protected:
  int_type underflow() override {
    const int_type next = std::stringbuf::underflow();
    if (next == traits_type::eof()) throw std::runtime_error("a disk fails");
    return next;
  }
};

TEST_F(BatchRunTest, EndsWhereItsInputOrOutputFails) {
  RunningServer server;
  const std::string good = line("a", R"({"prompt":"a","max_tokens":1})");
  FailingInput failing(good + good, std::ios::in);
  std::istream broken_in(&failing);
  std::ostringstream out;
  const std::string message = message_of([&] { run(broken_in, out, server); });
  EXPECT_NE(message.find("[input]"), std::string::npos) << message;
  EXPECT_NE(message.find("line 2"), std::string::npos) << message;
  std::istringstream in(good);
  std::ostream broken_out(nullptr);
  EXPECT_NE(message_of<DeviceError>([&] { run(in, broken_out, server); }).find("[output]"), std::string::npos);
}

TEST_F(BatchRunTest, FailsARequestAloneWhateverIsThrown) {
  RunningServer server;
  ToolDialect throwing = hermes_dialect();
  throwing.parser = [](const Json&) -> std::unique_ptr<ToolParser> { throw std::runtime_error("no parser"); };
  dialect_ = &throwing;
  const std::string plain = R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2})";
  const std::string with_tools =
      R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2,"truncate_prompt_tokens":9,)"
      R"("tools":[{"type":"function","function":{"name":"f"}}]})";
  const std::string url = "/v1/chat/completions";
  const Batch batch = run(line("a", plain, url) + line("b", with_tools, url) + line("c", plain, url), server);
  ASSERT_EQ(batch.results.size(), 3U);
  EXPECT_EQ(batch.counts.failed, 1);
  EXPECT_EQ(batch.results[0]["response"]["status_code"], 200);
  EXPECT_EQ(batch.results[1]["response"]["status_code"], 500);
  EXPECT_EQ(batch.results[2]["response"]["status_code"], 200);
  ASSERT_FALSE(log_.empty());
  EXPECT_NE(log_.back().find("no parser"), std::string::npos);
}

TEST_F(BatchRunTest, AnswersResponses) {
  RunningServer server;
  const Batch batch = run(line("a", R"({"input":"a","max_output_tokens":2,"seed":1})", "/v1/responses"), server);
  ASSERT_EQ(batch.results.size(), 1U);
  EXPECT_EQ(batch.results[0]["response"]["body"]["object"], "response");
}

TEST_F(BatchRunTest, TakesFilesWithNothingToRun) {
  RunningServer server;
  EXPECT_TRUE(run("", server).results.empty());
  EXPECT_EQ(run("\n  \n{}\n", server).counts.failed, 1);
}

}  // namespace weft::batch_run_test
