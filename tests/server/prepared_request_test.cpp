#include "server/prepared_request.h"

#include <fstream>

#include <gtest/gtest.h>

#include "server/json_body.h"
#include "tests/engine/tiny_model.h"

namespace weft::prepared_request_test {

// The I/O thread frees a request, and freeing millions of values takes it longer than /health may wait.
TEST(PreparedRequest, KeepsNoValuesThatAreReadOnce) {
  const TemporaryFolder folder;
  const std::string chat_template = folder / "template.jinja";
  std::ofstream(chat_template) << "{% for m in messages %}{{ m.content }}{% endfor %}";
  const auto engine = tiny_engine(write_tiny_model(folder));
  const ServedModel model =
      make_served_model(*engine, {.names = {"tiny"}, .root = "tiny.gguf", .chat_template = chat_template});
  const JsonBody body(
      R"({"messages":[{"role":"user","content":"a"}],"documents":[1],"chat_template_kwargs":{"x":[1]},)"
      R"("response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"null"}}}})");
  const PreparedRequest prepared = prepare(read_fields(body.object(), chat), model);
  EXPECT_NE(prepared.parameters.constraint, nullptr);
  EXPECT_EQ(prepared.prompts.size(), 1U);
  const ApiRequest& request = prepared.request;
  for (const Json* value :
       {&request.messages, &request.documents, &request.template_arguments, &request.response_format})
    EXPECT_TRUE(value->is_null()) << json_text(*value);
}

}  // namespace weft::prepared_request_test
