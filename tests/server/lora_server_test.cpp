// LoRA adapters as clients see them: a request names one as its model.

#include <gtest/gtest.h>

#include "base/json.h"
#include "builtin/models.h"
#include "tests/http_client.h"
#include "tests/sample_lora.h"
#include "tests/server/running_server.h"
#include "tests/thrown_message.h"

namespace weft::lora_server_test {

// The tiny model has the shapes of the sample of Llama.
class AdaptersOfServer : public ::testing::Test {
 protected:
  std::string adapter(const std::string& name, std::uint64_t seed) const {
    const ModelRegistry models = make_model_registry();
    const ModelDefinition& model = models.find("llama", "test");
    const SampleLora lora(model, SampleCheckpoint(model), names_of_linear_layers(), {.seed = seed});
    return lora.write_folder(folder_, name);
  }
  Json answer(const std::string& model, const std::string& path = "/v1/completions", const std::string& fields = "") {
    const ClientResponse response = HttpClient(running_.port()).post(path, body_of(model, fields));
    EXPECT_EQ(response.status, 200) << response.body;
    return parse_json(response.body);
  }
  static std::string body_of(const std::string& model, const std::string& fields = "") {
    return R"({"prompt":"Hello","max_tokens":8,"temperature":0,"ignore_eos":true,"model":")" + model + "\"" + fields +
           "}";
  }
  std::string text(const std::string& model) { return answer(model)["choices"][0]["text"].get<std::string>(); }

  const TemporaryFolder folder_;
  const std::string first_path_ = adapter("first", 1);
  RunningServer running_{
      {}, {{"lora-modules", "first=" + first_path_}, {"lora-modules", "second=" + adapter("second", 2)}}};
};

TEST_F(AdaptersOfServer, AreChosenByTheModelOfARequest) {
  const std::string plain = text("tiny"), first = text("first"), second = text("second");
  EXPECT_NE(plain, first);
  EXPECT_NE(plain, second);
  EXPECT_NE(first, second);
  EXPECT_EQ(answer("first")["model"], "first");
  EXPECT_EQ(answer("tiny")["model"], "tiny");
  RunningServer alone({}, {{"lora", first_path_}});
  const Json of_all = parse_json(HttpClient(alone.port()).post("/v1/completions", body_of("tiny")).body);
  EXPECT_EQ(of_all["choices"][0]["text"], first) << "the adapter of all requests";
}

TEST_F(AdaptersOfServer, ShareStepsWithOtherRequests) {
  const std::vector<std::string> models{"tiny", "first", "second", "first", "tiny", "second"};
  std::vector<std::string> wanted;
  for (const std::string& model : models) wanted.push_back(text(model));
  std::vector<std::future<std::string>> texts;
  for (const std::string& model : models)
    texts.push_back(std::async(std::launch::async, [&, model] { return text(model); }));
  for (std::size_t i = 0; i < models.size(); ++i) EXPECT_EQ(texts[i].get(), wanted[i]) << models[i];
}

TEST_F(AdaptersOfServer, AnswerOnEveryPathByTheirName) {
  const std::string messages = R"(,"messages":[{"role":"user","content":"ab"}])";
  EXPECT_EQ(answer("first", "/v1/chat/completions", messages)["model"], "first");
  EXPECT_EQ(answer("first", "/v1/messages", messages)["model"], "first");
  const ClientResponse response =
      HttpClient(running_.port()).post("/v1/responses", R"({"model":"first","input":"ab","max_output_tokens":4})");
  EXPECT_EQ(parse_json(response.body)["model"], "first") << response.body;
  EXPECT_EQ(answer("first", "/completion", R"(,"n_predict":8)")["content"], text("first"));
}

TEST_F(AdaptersOfServer, AreListedAfterTheModel) {
  HttpClient client(running_.port());
  const Json list = parse_json(client.get("/v1/models").body)["data"];
  ASSERT_GE(list.size(), 3U);
  const Json& first = list[list.size() - 2];
  EXPECT_EQ(first["id"], "first");
  EXPECT_EQ(first["root"], first_path_);
  EXPECT_EQ(first["parent"], "tiny");
  EXPECT_EQ(list[0]["parent"], nullptr);
  EXPECT_EQ(list[list.size() - 1]["id"], "second");
  EXPECT_EQ(parse_json(client.get("/v1/models/second").body)["id"], "second");
  EXPECT_EQ(client.post("/v1/completions", body_of("third")).status, 404);
}

TEST_F(AdaptersOfServer, HaveOtherNamesThanTheModel) {
  const std::string message = message_of([&] { RunningServer({}, {{"lora-modules", "tiny=" + first_path_}}); });
  EXPECT_EQ(missing_part(message, {"--lora-modules", "tiny", "name of the model"}), "");
}

}  // namespace weft::lora_server_test
