// The fields of /v1/responses: what they become, their bounds, and what is refused by its name.

#include "server/responses_input.h"

#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/conversation_parts.h"
#include "server/json_body.h"

namespace weft::responses_input_test {

ApiRequest read(const std::string& json) {
  const JsonBody body(json);
  ApiRequest request = read_fields(body.object(), responses);
  check_fields(request);
  return request;
}

Json error_of(const std::string& fields) {
  try {
    read("{\"input\":\"a\"," + fields + "}");
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400) << fields;
    return error.body()["error"];
  }
  return nullptr;
}

Json messages_of(const std::string& input) { return read("{\"input\":" + input + "}").messages; }

TEST(ResponsesInput, AreTheMessagesOfAChat) {
  EXPECT_EQ(messages_of("\"Hi\""), parse_json(R"([{"role":"user","content":"Hi"}])"));
  const std::string items = R"([
      {"role":"developer","content":"Be short."},
      {"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},
      {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"why"}],
       "encrypted_content":null},
      {"type":"message","id":"msg_1","status":"completed","role":"assistant",
       "content":[{"type":"output_text","text":"Look","annotations":[]}]},
      {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"},
      {"type":"function_call","call_id":"c2","name":"g","arguments":"{\"a\":1}"},
      {"type":"function_call_output","call_id":"c1","output":"one"},
      {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"two"}]},
      {"role":"assistant","content":"So"}])";
  EXPECT_EQ(messages_of(items), parse_json(R"([
      {"role":"system","content":"Be short."},
      {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","reasoning":"why","content":[{"type":"text","text":"Look"}],
       "tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},
                     {"id":"c2","type":"function","function":{"name":"g","arguments":"{\"a\":1}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"one"},
      {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]},
      {"role":"assistant","content":"So"}])"));
  EXPECT_EQ(with_instructions(messages_of("\"Hi\""), "Sing")[0], Json({{"role", "system"}, {"content", "Sing"}}));
}

TEST(ResponsesInput, AnAnswerMayConsistOfSomeItemsAlone) {
  EXPECT_EQ(messages_of(R"([{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}]},
                            {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"t"}]}])"),
            parse_json(R"([{"role":"assistant","reasoning":"st","content":""}])"));
  EXPECT_EQ(messages_of(R"([{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}])")[0]["content"],
            nullptr);
  const Json two = messages_of(R"([{"role":"assistant","content":"a"},
                                   {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"t"}]},
                                   {"role":"assistant","content":"b"}])");
  ASSERT_EQ(two.size(), 2U) << "a reasoning begins an answer";
  EXPECT_EQ(two[1], parse_json(R"({"role":"assistant","reasoning":"t","content":"b"})"));
}

TEST(ResponsesInput, RefusesOtherItemsByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"web_search_call"})", "web_search_call"},
      {R"({"type":"item_reference","id":"a"})", "item_reference"},
      {R"({"role":"user","content":[{"type":"input_image","image_url":"data:"}]})", "input_image"},
      {R"({"role":"user","content":[{"type":"input_file","file_id":"a"}]})", "input_file"},
      {R"({"role":"user","content":[{"type":"input_text"}]})", "input_text"},
      {R"({"role":"user","content":[3]})", "type"},
      {R"({"role":"user"})", "content"},
      {R"({"role":"cook","content":"a"})", "cook"},
      {R"({"content":"a"})", "role"},
      {R"({"type":3})", "type"},
      {R"("a")", "object"},
      {R"({"type":"function_call","name":"f","arguments":"{}"})", "call_id"},
      {R"({"type":"function_call","call_id":"c","arguments":"{}"})", "name"},
      {R"({"type":"function_call","call_id":"c","name":"f","arguments":{}})", "arguments"},
      {R"({"type":"function_call_output","call_id":"c"})", "output"},
      {R"({"type":"reasoning","summary":[],"encrypted_content":"x"})", "encrypted_content"}};
  for (const auto& [item, word] : cases) {
    const Json error = error_of(std::string(R"("input":[{"role":"user","content":"a"},)") + item + "]");
    ASSERT_FALSE(error.is_null()) << item;
    EXPECT_EQ(error["param"], "input");
    const std::string message = error["message"];
    EXPECT_NE(message.find("item 1 "), std::string::npos) << message;
    EXPECT_NE(message.find(word), std::string::npos) << message;
  }
  EXPECT_EQ(error_of("\"input\":3")["param"], "body.input");
}

TEST(ResponsesInput, ToolsBecomeThoseOfAChat) {
  const std::string tools =
      R"([{"type":"function","name":"f","description":null,"strict":true,"parameters":{"type":"object"}}])";
  const ApiRequest request =
      read("{\"input\":\"a\",\"tools\":" + tools + R"(,"tool_choice":{"type":"function","name":"f"}})");
  EXPECT_EQ(request.tools, parse_json(R"([{"type":"function","function":
      {"name":"f","strict":true,"parameters":{"type":"object"}}}])"));
  EXPECT_EQ(request.repeated["tools"], parse_json(tools));
  EXPECT_EQ(request.tool_choice->kind, ToolChoice::Kind::named);
  EXPECT_EQ(request.tool_choice->function, "f");
  EXPECT_TRUE(read(R"({"input":"a","tools":[],"tool_choice":"auto"})").tools.is_null());
  const std::pair<std::string, const char*> wrong[] = {
      {R"("tools":[{"type":"web_search"}])", "tools"},
      {R"("tools":[{"type":"mcp","server_label":"a"}])", "tools"},
      {R"("tools":[{"type":"function"}])", "body.tools"},
      {R"("tools":[{"type":"function","name":"a b"}])", "tools"},
      {R"("tools":[{"type":"function","name":"f","parameters":[]}])", "body.tools"},
      {"\"tools\":" + tools + R"(,"tool_choice":{"type":"function","name":"g"})", "tool_choice.name"},
      {"\"tools\":" + tools + R"(,"tool_choice":{"type":"file_search"})", "tool_choice"},
      {"\"tools\":" + tools + R"(,"tool_choice":"any")", "body.tool_choice"},
      {R"("tool_choice":"required")", "tool_choice"}};
  for (const auto& [fields, parameter] : wrong) {
    const Json error = error_of(fields);
    ASSERT_FALSE(error.is_null()) << fields;
    EXPECT_EQ(error["param"], parameter) << fields;
  }
}

TEST(ResponsesInput, OptionsBecomeThoseOfAChat) {
  const ApiRequest request = read(R"({"input":"a","text":{"verbosity":"low","format":{"type":"json_schema","name":"n",
      "schema":{"type":"object"},"strict":true}},"reasoning":{"effort":"high","summary":"auto"},"top_logprobs":2,
      "include":["message.output_text.logprobs","reasoning.encrypted_content"],"max_output_tokens":9})");
  EXPECT_EQ(request.response_format["type"], "json_schema");
  EXPECT_EQ(request.response_format["json_schema"]["schema"], Json({{"type", "object"}}));
  EXPECT_EQ(request.response_format["json_schema"]["strict"], true);
  EXPECT_EQ(request.reasoning_effort, "high");
  EXPECT_EQ(request.wants_logprobs, true);
  EXPECT_EQ(request.max_completion_tokens, 9);
  EXPECT_TRUE(read(R"({"input":"a","text":{},"reasoning":{"effort":null},"include":[]})").response_format.is_null());
}

TEST(ResponsesInput, TakesEachFieldWithinItsBoundsAlone) {
  struct Case {
    const char* field;
    std::vector<const char*> inside, outside;
  };
  const Case cases[] = {{"max_output_tokens", {"1", "100"}, {"0", "-1"}},
                        {"temperature", {"0", "2"}, {"-0.1", "2.1"}},
                        {"top_p", {"0.1", "1"}, {"0", "1.1"}},
                        {"top_k", {"-1", "40"}, {"-2"}},
                        {"truncation", {"\"auto\"", "\"disabled\"", "null"}, {"\"left\"", "1"}},
                        {"metadata", {"{}", R"({"a":"b"})"}, {R"({"a":1})", "[]"}},
                        {"include", {"[]", "[\"file_search_call.results\"]"}, {"[\"all\"]", "[1]", "\"a\""}},
                        {"text",
                         {"{}", R"({"format":{"type":"text"}})"},
                         {"[]", R"({"format":1})", R"({"format":{"type":"json_schema"}})"}},
                        {"reasoning", {"{}", R"({"effort":"low"})"}, {"\"low\"", R"({"effort":1})"}},
                        {"store", {"true", "false"}, {}},
                        {"user", {"\"u\""}, {"1"}},
                        {"instructions", {"\"i\"", "null"}, {"[]"}},
                        {"background", {"false", "null"}, {"true"}},
                        {"previous_response_id", {"null"}, {"\"resp_1\""}},
                        {"conversation", {"null"}, {"\"c\""}},
                        {"prompt", {"null"}, {R"({"id":"p"})"}},
                        {"n", {"1"}, {"2"}},
                        {"max_tokens", {"null"}, {"5"}},
                        {"messages", {"null"}, {"[]"}},
                        {"response_format", {"null"}, {"{}"}},
                        {"logprobs", {"false"}, {"true"}},
                        {"top_logprobs", {"0"}, {"2"}},
                        {"stream_options", {"null"}, {R"({"include_obfuscation":false})"}}};
  for (const Case& one : cases) {
    const std::string begin = std::string("\"") + one.field + "\":";
    for (const char* value : one.inside) EXPECT_TRUE(error_of(begin + value).is_null()) << begin << value;
    for (const char* value : one.outside) {
      const Json error = error_of(begin + value);
      ASSERT_FALSE(error.is_null()) << begin << value;
      EXPECT_TRUE(error["param"] == one.field || error["param"] == std::string("body.") + one.field) << error.dump();
    }
  }
  EXPECT_THROW(read("{}"), ApiError) << "the input is missing";
  EXPECT_EQ(read(R"({"input":"a","colour":1})").unknown, std::vector<std::string>{"colour"});
}

}  // namespace weft::responses_input_test
