// What chat templates get of tools and of their calls.

#include "server/tool_calls/tool_messages.h"

#include <gtest/gtest.h>

#include "server/api_error.h"

namespace weft::tool_messages_test {

Json messages_with_call(const std::string& arguments) {
  return Json::array(
      {{{"role", "user"}, {"content", "Hi"}},
       {{"role", "assistant"},
        {"content", nullptr},
        {"tool_calls",
         Json::array({{{"id", "1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}}})}},
       {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "42"}}});
}

TEST(ToolMessages, GiveTemplatesArgumentsAsObjects) {
  const auto arguments = [](const std::string& text) {
    return with_parsed_arguments(messages_with_call(text))[1]["tool_calls"][0]["function"]["arguments"];
  };
  EXPECT_EQ(arguments("{\"a\": [1]}"), Json({{"a", {1}}}));
  EXPECT_EQ(arguments(""), Json::object());
  for (const char* wrong : {"{\"a\"", "[1]", "3", "null"}) EXPECT_THROW(arguments(wrong), ApiError) << wrong;
  Json without = messages_with_call("{}");
  without[1]["tool_calls"][0]["function"].erase("arguments");
  EXPECT_EQ(with_parsed_arguments(without)[1]["tool_calls"][0]["function"]["arguments"], Json::object());
}

TEST(ToolMessages, PutToolsIntoTheSystemMessage) {
  const Json tools = Json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
  const Json added = with_tools_in_system_message(messages_with_call("{}"), tools);
  ASSERT_EQ(added.size(), 4U);
  EXPECT_EQ(added[0]["role"], "system");
  const std::string text = added[0]["content"];
  EXPECT_NE(text.find(json_text(tools[0])), std::string::npos);
  EXPECT_NE(text.find("<tool_call>"), std::string::npos);
  const Json joined = with_tools_in_system_message(Json::array({{{"role", "system"}, {"content", "Be kind."}}}), tools);
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0]["content"], "Be kind.\n\n" + text);
}

TEST(ToolMessages, WriteCallsAndResultsAsText) {
  const Json written = with_calls_as_content(with_parsed_arguments(messages_with_call("{\"a\":1}")));
  EXPECT_EQ(written[1]["content"], "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>");
  EXPECT_FALSE(written[1].contains("tool_calls"));
  EXPECT_EQ(written[2]["role"], "user");
  EXPECT_EQ(written[2]["content"], "<tool_response>\n42\n</tool_response>");
}

}  // namespace weft::tool_messages_test
