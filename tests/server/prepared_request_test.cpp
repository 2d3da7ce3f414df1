#include "server/prepared_request.h"

#include <fstream>

#include <gtest/gtest.h>

#include "server/json_body.h"
#include "tests/engine/tiny_model.h"
#include "tests/thrown_message.h"

namespace weft::prepared_request_test {

// A model with a template that has the contents of the messages alone.
struct PlainChat {
  TemporaryFolder folder;
  std::string chat_template = folder / "template.jinja";
  std::unique_ptr<Engine> engine;
  ServedModel model;

  PlainChat() {
    std::ofstream(chat_template) << "{% for m in messages %}{{ m.content }}{% endfor %}";
    engine = tiny_engine(write_tiny_model(folder));
    model = make_served_model(*engine, {.names = {"tiny"}, .root = "tiny.gguf", .chat_template = chat_template});
  }
};

// The I/O thread frees a request, and freeing millions of values takes it longer than /health may wait.
TEST(PreparedRequest, KeepsNoValuesThatAreReadOnce) {
  const PlainChat tiny;
  const JsonBody body(
      R"({"messages":[{"role":"user","content":"a"}],"documents":[1],"chat_template_kwargs":{"x":[1]},)"
      R"("response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"null"}}}})");
  const PreparedRequest prepared = prepare(read_fields(body.object(), chat), tiny.model);
  EXPECT_NE(prepared.parameters.constraint, nullptr);
  EXPECT_EQ(prepared.prompts.size(), 1U);
  const ApiRequest& request = prepared.request;
  for (const Json* value :
       {&request.messages, &request.documents, &request.template_arguments, &request.response_format})
    EXPECT_TRUE(value->is_null()) << json_text(*value);
}

TEST(PreparedRequest, JoinsThePartsOfAContentByLineFeeds) {
  const PlainChat tiny;
  const auto prompt_of = [&](const Json& texts) {
    Json parts = Json::array();
    for (const Json& text : texts) parts.push_back({{"type", "text"}, {"text", text}});
    const JsonBody body(json_text({{"messages", Json::array({{{"role", "user"}, {"content", parts}}})}}));
    return prepare(read_fields(body.object(), chat), tiny.model).prompt_text;
  };
  EXPECT_EQ(prompt_of({"a", "b"}), "a\nb");
  EXPECT_EQ(prompt_of({"", "b"}), "\nb");
  EXPECT_EQ(prompt_of({"a", "", "b"}), "a\n\nb");
  EXPECT_EQ(prompt_of({"", "", "b"}), "\n\nb");
}

// A name is by default the path of the model, which may be any bytes.
TEST(ServedModel, HasNamesInUtf8) {
  const TemporaryFolder folder;
  const auto engine = tiny_engine(write_tiny_model(folder));
  const std::string bytes = "non\xFF\xFEutf", text = "non\uFFFD\uFFFDutf";
  const ServedModel model = make_served_model(*engine, {.names = {bytes, "b"}, .root = bytes});
  EXPECT_EQ(model.names, (std::vector<std::string>{text, "b"}));
  EXPECT_EQ(model.root, text);
}

// Finding the tokens of a very long text takes seconds.
TEST(PreparedRequest, RefusesATextThatCannotFitBeforeItsTokensAreKnown) {
  const TemporaryFolder folder;
  const auto engine = tiny_engine(write_tiny_model(folder));
  const ServedModel model = make_served_model(*engine, {.names = {"tiny"}, .root = "tiny.gguf"});
  EXPECT_GT(model.most_bytes_of_token, 0U);
  const auto prepared = [&](const std::string& more) {
    const JsonBody body(R"({"prompt":")" + std::string(100'000, 'a') + '"' + more + "}");
    return prepare(read_fields(body.object(), completions), model);
  };
  EXPECT_NE(message_of<ApiError>([&] { prepared(""); }).find("at least "), std::string::npos);
  EXPECT_EQ(prepared(R"(,"truncate_prompt_tokens":5)").prompts[0].ids->size(), 5U);
}

// What is echoed are the words of the last message, whatever is left of the prompt.
TEST(PreparedRequest, EchoesTheLastMessageOfATruncatedChat) {
  const PlainChat tiny;
  const JsonBody body(
      R"({"messages":[{"role":"user","content":"Say hi"},{"role":"assistant","content":"The sky"}],"echo":true,)"
      R"("continue_final_message":true,"add_generation_prompt":false,"truncate_prompt_tokens":5})");
  EXPECT_EQ(prepare(read_fields(body.object(), chat), tiny.model).prompts[0].text, "The sky");
}

}  // namespace weft::prepared_request_test
