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

// Adapters that a client loads and unloads.
class AdaptersAtRunTime : public AdaptersOfServer {
 protected:
  ClientResponse load(const std::string& name, const std::string& path, const std::string& fields = "") {
    return HttpClient(server_.port())
        .post("/v1/load_lora_adapter", R"({"lora_name":")" + name + R"(","lora_path":")" + path + "\"" + fields + "}");
  }
  ClientResponse unload(const std::string& name) {
    return HttpClient(server_.port()).post("/v1/unload_lora_adapter", R"({"lora_name":")" + name + "\"}");
  }
  ClientResponse ask(const std::string& model, const std::string& fields = "") {
    return HttpClient(server_.port()).post("/v1/completions", body_of(model, fields));
  }
  std::string text_of(const std::string& model, const std::string& fields = "") {
    const ClientResponse response = ask(model, fields);
    EXPECT_EQ(response.status, 200) << response.body;
    return parse_json(response.body)["choices"][0]["text"].get<std::string>();
  }

  const std::string second_path_ = adapter("second again", 2);
  RunningServer server_{{},
                        {{"allow-runtime-lora-updating", "true"},
                         {"max-lora-rank", "8"},
                         {"forbid-lazy", "true"},
                         {"lora-modules", "old=" + first_path_}}};
};

TEST_F(AdaptersAtRunTime, AreLoadedAndUnloaded) {
  const std::string plain = text("tiny"), first = text("first"), second = text("second");
  EXPECT_EQ(text_of("old"), first);
  const ClientResponse loaded = load("new", second_path_);
  EXPECT_EQ(loaded.status, 200);
  EXPECT_EQ(loaded.body, "Success: LoRA adapter 'new' added successfully.");
  EXPECT_EQ(text_of("new"), second);
  EXPECT_EQ(text_of("tiny"), plain);
  EXPECT_EQ(text_of("old"), first);
  const Json list = parse_json(HttpClient(server_.port()).get("/v1/models").body)["data"];
  EXPECT_EQ(list.back()["id"], "new");
  EXPECT_EQ(list.back()["root"], second_path_);
  EXPECT_EQ(list.back()["parent"], "tiny");
  EXPECT_EQ(parse_json(HttpClient(server_.port()).get("/v1/models/new").body)["parent"], "tiny");
  for (const char* name : {"new", "old"}) {
    const ClientResponse unloaded = unload(name);
    EXPECT_EQ(unloaded.status, 200);
    EXPECT_EQ(unloaded.body, std::string("Success: LoRA adapter '") + name + "' removed successfully.");
    EXPECT_EQ(ask(name).status, 404);
  }
  EXPECT_EQ(HttpClient(server_.port()).get("/v1/models/new").status, 404);
}

TEST_F(AdaptersAtRunTime, AreReplacedInPlace) {
  const std::string first = text("first"), second = text("second");
  const std::string long_prompt = R"(,"prompt":")" + std::string(40, 'a') + "\"";
  const auto of_long = [&](const std::string& model) {
    return answer(model, "/v1/completions", long_prompt)["choices"][0]["text"];
  };
  EXPECT_EQ(load("x", first_path_).status, 200);
  EXPECT_EQ(text_of("x"), first);
  EXPECT_EQ(text_of("x", long_prompt), of_long("first"));
  const ClientResponse again = load("x", second_path_);
  EXPECT_EQ(again.status, 400);
  EXPECT_EQ(parse_json(again.body)["error"]["type"], "InvalidUserInput");
  EXPECT_EQ(parse_json(again.body)["error"]["message"],
            "The lora adapter 'x' has already been loaded. If you want to load the adapter in place, set "
            "'load_inplace' to True.");
  EXPECT_EQ(load("x", second_path_, R"(,"load_inplace":true)").status, 200);
  EXPECT_EQ(text_of("x"), second);
  EXPECT_EQ(text_of("x", long_prompt), of_long("second")) << "the prefix cache has pages of the first";
}

TEST_F(AdaptersAtRunTime, StayForTheRequestsThatBeganWithThem) {
  // Choices make the answers long enough that the others come while they are computed.
  const std::string fields = R"(,"max_tokens":100,"n":16)";
  EXPECT_EQ(load("x", first_path_).status, 200);
  const std::string wanted = text_of("x", fields), other = text_of("tiny", fields);
  std::vector<std::future<std::string>> texts;
  for (int i = 0; i < 4; ++i) texts.push_back(std::async(std::launch::async, [&] { return text_of("x", fields); }));
  EXPECT_TRUE(server_.has_load(64));
  EXPECT_EQ(load("x", second_path_, R"(,"load_inplace":true)").status, 200);
  EXPECT_EQ(unload("x").status, 200);
  EXPECT_EQ(load("y", second_path_).status, 200);
  EXPECT_EQ(text_of("tiny", fields), other);
  for (auto& text : texts) EXPECT_EQ(text.get(), wanted);
}

TEST_F(AdaptersAtRunTime, GiveTheirPlacesBack) {
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(load("x", i % 2 == 0 ? first_path_ : second_path_).status, 200) << i;
    ASSERT_EQ(unload("x").status, 200);
  }
  int count = 0;
  ClientResponse last;
  while ((last = load("x" + std::to_string(count), first_path_)).status == 200) ++count;
  EXPECT_EQ(count, 16);
  EXPECT_EQ(last.status, 503);
  EXPECT_EQ(missing_part(last.body, {"17 places", "--max-loras"}), "");
}

TEST_F(AdaptersAtRunTime, AreRefusedAsByVllm) {
  const auto error = [](const ClientResponse& response) { return parse_json(response.body)["error"]; };
  ClientResponse response = load("x", first_path_ + "/none");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(error(response)["message"], "Loading lora x failed: No adapter found for " + first_path_ + "/none");
  EXPECT_EQ(error(response)["type"], "NotFoundError");
  response = load("x", "");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(error(response)["message"], "Both 'lora_name' and 'lora_path' must be provided.");
  response = load("tiny", first_path_);
  EXPECT_EQ(response.status, 400);
  response = unload("x");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(error(response)["message"], "The lora adapter 'x' cannot be found.");
  response = unload("");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(error(response)["message"], "'lora_name' needs to be provided to unload a LoRA adapter.");
  response = load("x", server_.template_path());
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(missing_part(response.body, {"Loading lora x failed"}), "");
  std::string log;
  for (const std::string& line : server_.log()) log += line + "\n";
  EXPECT_EQ(missing_part(log, {"[lora] refused: ", "No adapter found for", "Loading lora x failed"}), "");
  const ClientResponse off = HttpClient(running_.port()).post("/v1/unload_lora_adapter", R"({"lora_name":"first"})");
  EXPECT_EQ(off.status, 404);
  EXPECT_EQ(missing_part(off.body, {"--allow-runtime-lora-updating", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"}), "");
  EXPECT_EQ(text("first"), text("first"));
}

// The adapters of all requests, whose scales a client may change.
class ScalesOfAdapters : public AdaptersOfServer {
 protected:
  using Options = RunningServer::EngineOptions;
  static std::string text_of(RunningServer& server, const std::string& fields = "", const char* path = "/completion") {
    const ClientResponse response = HttpClient(server.port()).post(path, body_of("tiny", R"(,"n_predict":8)" + fields));
    EXPECT_EQ(response.status, 200) << response.body;
    return parse_json(response.body)["content"].get<std::string>();
  }
  std::string text_with(const Options& options) {
    RunningServer server({}, options);
    return text_of(server);
  }
  static ClientResponse set(RunningServer& server, const std::string& body) {
    return HttpClient(server.port()).post("/lora-adapters", body);
  }
  static Json get(RunningServer& server) { return parse_json(HttpClient(server.port()).get("/lora-adapters").body); }

  const std::string second_path_ = adapter("second again", 2);
  RunningServer server_{{}, {{"lora", first_path_}, {"lora-scaled", second_path_ + ":0.5"}, {"lora-scale-slots", "2"}}};
};

TEST_F(ScalesOfAdapters, AreThoseOfTheCommandLineFirst) {
  const Json list = get(server_);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["id"], 0);
  EXPECT_EQ(list[0]["path"], first_path_);
  EXPECT_EQ(list[0]["scale"], 1);
  EXPECT_EQ(list[1]["scale"], 0.5);
  EXPECT_EQ(text_of(server_), text_with({{"lora", first_path_}, {"lora-scaled", second_path_ + ":0.5"}}));
  EXPECT_EQ(get(running_), Json::array()) << "those of requests are not among them";
}

TEST_F(ScalesOfAdapters, AreChangedForAllRequests) {
  const std::string wanted = text_with({{"lora-scaled", second_path_ + ":2"}});
  EXPECT_EQ(set(server_, R"([{"id":1,"scale":2}])").body, R"({"success":true})");
  EXPECT_EQ(get(server_)[0]["scale"], 0);
  EXPECT_EQ(get(server_)[1]["scale"], 2);
  EXPECT_EQ(text_of(server_), wanted);
  EXPECT_EQ(set(server_, "[]").status, 200);
  EXPECT_EQ(text_of(server_), text("tiny"));
  EXPECT_EQ(set(server_, R"([{"id":0,"scale":1},{"id":1,"scale":0.5}])").status, 200);
  EXPECT_EQ(text_of(server_), text_with({{"lora", first_path_}, {"lora-scaled", second_path_ + ":0.5"}}));
}

TEST_F(ScalesOfAdapters, MayBeThoseOfARequest) {
  const std::string all = text_of(server_), first = text("first"), second = text("second");
  for (int round = 0; round < 3; ++round) {  // with more sets of scales than there are places
    EXPECT_EQ(text_of(server_, R"(,"lora":[{"id":0,"scale":1}])"), first);
    EXPECT_EQ(text_of(server_, R"(,"lora":[{"id":1,"scale":1}])"), second);
    EXPECT_EQ(text_of(server_, R"(,"lora":[{"id":1}])"), text("tiny"));
    EXPECT_EQ(text_of(server_, R"(,"lora":[])"), all);
  }
  const ClientResponse chat =
      HttpClient(server_.port()).post("/v1/completions", body_of("tiny", R"(,"lora":[{"id":0,"scale":1}])"));
  EXPECT_EQ(parse_json(chat.body)["choices"][0]["text"], first);
}

TEST_F(ScalesOfAdapters, AreRefused) {
  EXPECT_EQ(missing_part(set(server_, R"({"id":0})").body, {"must be an array"}), "");
  EXPECT_EQ(set(server_, R"([{"id":0,"scale":"a"}])").status, 400);
  EXPECT_EQ(set(server_, R"([{"scale":1}])").status, 400);
  EXPECT_EQ(set(server_, "[").status, 400);
  EXPECT_EQ(missing_part(set(server_, R"([{"id":2,"scale":1}])").body, {"invalid adapter id 2", "2 adapters"}), "");
  const std::string of_named = body_of("first", R"(,"lora":[{"id":0,"scale":1}])");
  EXPECT_EQ(HttpClient(running_.port()).post("/v1/completions", of_named).status, 400);
  RunningServer alone({}, {{"lora", first_path_}});
  EXPECT_EQ(set(alone, R"([{"id":0,"scale":0.25}])").status, 501) << "without --lora-scale-slots";
  EXPECT_EQ(set(alone, R"([{"id":0,"scale":1}])").status, 200);
}

TEST_F(ScalesOfAdapters, MayBeginWithNone) {
  RunningServer server({}, {{"lora", first_path_}, {"lora-init-without-apply", "true"}, {"lora-scale-slots", "1"}});
  EXPECT_EQ(get(server)[0]["scale"], 0);
  EXPECT_EQ(text_of(server), text("tiny"));
  EXPECT_EQ(set(server, R"([{"id":0,"scale":1}])").status, 200);
  EXPECT_EQ(text_of(server), text("first"));
}

}  // namespace weft::lora_server_test
