// POST /infill of llama.cpp's server: the middle of a text.

#include <gtest/gtest.h>

#include "server/infill_prompt.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::infill_test {

RunningServer::ModelChanges with(std::vector<std::string> tokens) { return {.added_tokens = std::move(tokens)}; }

TEST(Infill, WritesThePromptOfTheModel) {
  RunningServer running({}, {}, {}, with({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}));
  HttpClient client(running.port());
  const std::string settings = R"("n_predict":4,"seed":5,"ignore_eos":true})";
  const Json filled = parse_json(
      client.post("/infill", R"({"input_prefix":"ab<end>","prompt":"c","input_suffix":"de",)" + settings).body);
  EXPECT_EQ(filled["prompt"], "<|fim_prefix|>ab<end>c<|fim_suffix|>de<|fim_middle|>");
  EXPECT_EQ(filled["tokens_evaluated"], 1 + 2 + 5 + 1 + 1 + 2 + 1) << "what a client sends is text";
  EXPECT_EQ(filled["tokens_predicted"], 4);
  // The same tokens as a prompt.
  std::string ids = "[257";
  for (const char c : std::string("ab<end>c")) ids += "," + std::to_string(int{c});
  const Json same = parse_json(client.post("/completion", "{\"prompt\":" + ids + ",258,100,101,259]," + settings).body);
  EXPECT_EQ(same["content"], filled["content"]);
  const Json files = parse_json(
      client
          .post("/infill",
                R"({"input_prefix":"","input_suffix":"","input_extra":[{"filename":"f","text":"x"}],)" + settings)
          .body);
  EXPECT_EQ(files["prompt"], "\n\n--- snippet ---\n\nx<|fim_prefix|><|fim_suffix|><|fim_middle|>");
}

TEST(Infill, NamesFilesWhereTheModelDoes) {
  RunningServer running({}, {}, {}, with({"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<file_sep>"}));
  HttpClient client(running.port());
  const Json files = parse_json(
      client
          .post("/infill",
                R"({"input_prefix":"a","input_suffix":"b","input_extra":[{"filename":"f","text":"x"}],"n_predict":1})")
          .body);
  EXPECT_EQ(files["prompt"],
            "<reponame>myproject\n<file_sep>f\nx<file_sep>filename\n<fim_prefix>a<fim_suffix>b<fim_middle>");
}

TEST(Infill, RefusesWhatItCannotDo) {
  RunningServer plain;
  HttpClient client(plain.port());
  EXPECT_EQ(client.post("/infill", R"({"input_prefix":"a","input_suffix":"b"})").status, 501);
  for (const char* wrong :
       {R"({"input_prefix":"a"})", R"({"input_suffix":"a"})", R"({"input_prefix":1,"input_suffix":""})",
        R"({"input_prefix":"a","input_suffix":"b","input_extra":[3]})",
        R"({"input_prefix":"a","input_suffix":"b","input_extra":[{"filename":"f"}]})"})
    EXPECT_EQ(client.post("/infill", wrong).status, 400) << wrong;
}

}  // namespace weft::infill_test
