// The fields of /v1/messages: what they become, their bounds, and what is refused by its name.

#include "server/messages_input.h"

#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/conversation_parts.h"
#include "server/json_body.h"

namespace weft::messages_input_test {

ApiRequest read(const std::string& json, Endpoint endpoint = anthropic_messages) {
  const JsonBody body(json);
  ApiRequest request = read_fields(body.object(), endpoint);
  check_fields(request);
  return request;
}

// The sentence about the fields, which come with a valid request; "" if they are accepted.
std::string error_of(const std::string& fields, Endpoint endpoint = anthropic_messages) {
  try {
    read(R"({"max_tokens":9,"messages":[{"role":"user","content":"a"}],)" + fields + "}", endpoint);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400) << fields;
    EXPECT_EQ(error.body(ErrorForm::anthropic)["error"]["type"], "invalid_request_error");
    return error.what();
  }
  return "";
}

ApiRequest with_messages(const std::string& messages) {
  return read("{\"max_tokens\":9,\"messages\":" + messages + "}");
}

Json messages_of(const std::string& messages) { return with_messages(messages).messages; }

TEST(MessagesInput, AreTheMessagesOfAChat) {
  EXPECT_EQ(messages_of(R"([{"role":"user","content":"Hi"}])"),
            parse_json(R"([{"role":"user","content":[{"type":"text","text":"Hi"}]}])"));
  const std::string turns = R"([
      {"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"why","signature":"s"},
                                     {"type":"redacted_thinking","data":"x"},{"type":"text","text":"Look"},
                                     {"type":"tool_use","id":"c1","name":"f","input":{}},
                                     {"type":"tool_use","id":"c2","name":"g","input":{"a":[1]}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"one"},
                                {"type":"tool_result","tool_use_id":"c2","is_error":true,
                                 "content":[{"type":"text","text":"two"},{"type":"text","text":"lines"}]},
                                {"type":"text","text":"And?"}]},
      {"role":"assistant","content":"So"},
      {"role":"user","content":"Yes"}])";
  EXPECT_EQ(messages_of(turns), parse_json(R"([
      {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","reasoning":"why","content":[{"type":"text","text":"Look"}],
       "tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{}}},
                     {"id":"c2","type":"function","function":{"name":"g","arguments":{"a":[1]}}}]},
      {"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"one"}]},
      {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"Error: two"},{"type":"text","text":"lines"}]},
      {"role":"user","content":[{"type":"text","text":"And?"}]},
      {"role":"assistant","content":[{"type":"text","text":"So"}]},
      {"role":"user","content":[{"type":"text","text":"Yes"}]}])"));
}

TEST(MessagesInput, ResultsOfCallsComeBeforeTheTextsAroundThem) {
  const std::string call = R"({"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]})";
  const Json turns = messages_of("[{\"role\":\"user\",\"content\":\"a\"}," + call + R"(,
      {"role":"system","content":"Be quick."},
      {"role":"user","content":[{"type":"text","text":"b"},{"type":"tool_result","tool_use_id":"c"},
                                {"type":"text","text":"d"}]}])");
  ASSERT_EQ(turns.size(), 5U) << turns.dump(1);
  EXPECT_EQ(turns[1]["content"], nullptr);
  EXPECT_EQ(turns[2]["role"], "tool");
  EXPECT_EQ(turns[2]["content"], Json::array());
  EXPECT_EQ(turns[3]["role"], "system");
  EXPECT_EQ(turns[4]["content"].size(), 2U);
}

TEST(MessagesInput, ConsecutiveMessagesOfARoleAreOne) {
  const Json turns = messages_of(R"([
      {"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":[]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""}]},
      {"role":"assistant","content":"c"},{"role":"user","content":"d"}])");
  ASSERT_EQ(turns.size(), 3U) << turns.dump(1);
  EXPECT_EQ(turns[0]["content"].size(), 2U);
  EXPECT_EQ(turns[1]["reasoning"], "t");
  EXPECT_EQ(turns[1]["content"].size(), 1U);
}

TEST(MessagesInput, AnAnswerThatIsBegunIsContinued) {
  EXPECT_EQ(
      with_messages(R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])").continue_final_message,
      true);
  EXPECT_FALSE(with_messages(R"([{"role":"user","content":"a"}])").continue_final_message.has_value());
}

TEST(MessagesInput, SystemMessagesAreOneBeforeAllOthers) {
  const Json turns = parse_json(R"([
      {"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"},
      {"role":"system","content":"d"},{"role":"assistant","content":"e"},{"role":"system","content":"f"},
      {"role":"user","content":"g"},{"role":"assistant","content":null,"tool_calls":[]},
      {"role":"tool","content":"h"},{"role":"system","content":"i"}])");
  const Json kept = with_one_system_message(turns, true);
  ASSERT_EQ(kept.size(), 9U);
  EXPECT_EQ(kept[0]["content"], "a\nb");
  EXPECT_EQ(kept[2]["role"], "system");
  EXPECT_EQ(with_one_system_message(turns, false), parse_json(R"([
      {"role":"system","content":"a\nb"},{"role":"user","content":"c\nd"},{"role":"assistant","content":"e"},
      {"role":"user","content":"f\ng"},{"role":"assistant","content":null,"tool_calls":[]},
      {"role":"tool","content":"h\ni"}])"));
}

TEST(MessagesInput, ATextBesideReasoningAndCallsIsTheEndOfTheReasoningForChannels) {
  const Json turns = parse_json(R"([
      {"role":"assistant","reasoning":"a","content":"b","tool_calls":[]},
      {"role":"assistant","reasoning":"a","content":"b"},
      {"role":"assistant","reasoning":"a","content":null,"tool_calls":[]},
      {"role":"assistant","content":"b","tool_calls":[]}])");
  Json joined = turns;
  joined[0]["reasoning"] = "a\nb";
  joined[0]["content"] = nullptr;
  EXPECT_EQ(with_one_text_beside_calls(turns), joined);
}

TEST(MessagesInput, RefusesOtherBlocksByName) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"user", R"({"type":"image","source":{"type":"url","url":"a"}})", "image"},
      {"user", R"({"type":"document","source":{}})", "document"},
      {"user", R"({"type":"search_result"})", "search_result"},
      {"user", R"({"type":"tool_use","id":"c","name":"f","input":{}})", "tool_use"},
      {"user", R"({"type":"thinking","thinking":"a","signature":""})", "thinking"},
      {"user", R"({"type":"text"})", "text"},
      {"user", R"({"text":"a"})", "type"},
      {"user", R"("a")", "object"},
      {"user", R"({"type":"tool_result","content":"a"})", "tool_use_id"},
      {"user", R"({"type":"tool_result","tool_use_id":"c","content":3})", "content"},
      {"user", R"({"type":"tool_result","tool_use_id":"c","content":[{"type":"image"}]})", "image"},
      {"user", R"({"type":"tool_result","tool_use_id":"c","content":[{"type":"text"}]})", "text"},
      {"user", R"({"type":"tool_result","tool_use_id":"c","content":[3]})", "type"},
      {"assistant", R"({"type":"server_tool_use","id":"c","name":"web_search","input":{}})", "server_tool_use"},
      {"assistant", R"({"type":"tool_result","tool_use_id":"c"})", "tool_result"},
      {"assistant", R"({"type":"tool_use","name":"f","input":{}})", "id"},
      {"assistant", R"({"type":"tool_use","id":"c","input":{}})", "name"},
      {"assistant", R"({"type":"tool_use","id":"c","name":"f","input":"{}"})", "input"},
      {"assistant", R"({"type":"thinking","signature":""})", "thinking"},
      {"system", R"({"type":"tool_result","tool_use_id":"c"})", "tool_result"}};
  for (const auto& [role, block, word] : cases) {
    const std::string message = error_of(std::string(R"("messages":[{"role":"user","content":"a"},{"role":")") + role +
                                         R"(","content":[{"type":"text","text":"b"},)" + block + "]}]");
    EXPECT_NE(message.find("message 1, block 1 "), std::string::npos) << block << message;
    EXPECT_NE(message.find(word), std::string::npos) << message;
  }
}

TEST(MessagesInput, RefusesOtherMessagesByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "messages"},
      {R"([{"role":"user","content":[]}])", "messages"},
      {"3", "messages"},
      {"[3]", "role"},
      {R"([{"content":"a"}])", "role"},
      {R"([{"role":"cook","content":"a"}])", "cook"},
      {R"([{"role":"developer","content":"a"}])", "developer"},
      {R"([{"role":"user"}])", "content"},
      {R"([{"role":"user","content":{}}])", "content"},
      {R"([{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}])", "tool_result"}};
  for (const auto& [messages, word] : cases) {
    const std::string message = error_of(std::string("\"messages\":") + messages);
    EXPECT_NE(message.find(word), std::string::npos) << messages << message;
  }
}

TEST(MessagesInput, ToolsBecomeThoseOfAChat) {
  const std::string tools =
      R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}},
                  {"type":"custom","name":"g","input_schema":{"type":"object"},"eager_input_streaming":true,
                   "defer_loading":false}])";
  const ApiRequest request = read(R"({"max_tokens":9,"messages":[{"role":"user","content":"a"}],)" + tools +
                                  R"(,"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}})");
  EXPECT_EQ(request.tools, parse_json(R"([
      {"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},
      {"type":"function","function":{"name":"g","parameters":{"type":"object"}}}])"));
  EXPECT_EQ(request.tool_choice->kind, ToolChoice::Kind::named);
  EXPECT_EQ(request.tool_choice->function, "f");
  EXPECT_EQ(request.parallel_tool_calls, false);
  const std::string long_name(128, 'a');
  EXPECT_EQ(error_of(R"("tools":[{"name":")" + long_name + R"(","input_schema":{}}])"), "");
  EXPECT_EQ(error_of(R"("tools":[],"tool_choice":{"type":"auto"})"), "");
  EXPECT_EQ(error_of(tools + R"(,"tool_choice":{"type":"any"})"), "");
  EXPECT_EQ(error_of(tools + R"(,"tool_choice":{"type":"none"})"), "");
  const std::pair<std::string, const char*> wrong[] = {
      {R"("tools":[{"type":"web_search_20250305","name":"web_search"}])", "web_search_20250305"},
      {R"("tools":[{"type":"bash_20250124","name":"bash"}])", "bash_20250124"},
      {R"("tools":[{"type":3,"name":"bash"}])", "tool 0"},
      {R"("tools":[3])", "tool 0"},
      {R"("tools":3)", "tools"},
      {R"("tools":[{"input_schema":{}}])", "name"},
      {R"("tools":[{"name":"f"}])", "input_schema"},
      {R"("tools":[{"name":"f","input_schema":[]}])", "input_schema"},
      {R"("tools":[{"name":"f","input_schema":{},"defer_loading":true}])", "defer_loading"},
      {R"("tools":[{"name":"a b","input_schema":{}}])", "a b"},
      {R"("tools":[{"name":")" + long_name + R"(a","input_schema":{}}])", "128"},
      {tools + R"(,"tool_choice":{"type":"tool","name":"h"})", "tool_choice.name"},
      {tools + R"(,"tool_choice":{"type":"tool"})", "tool_choice"},
      {tools + R"(,"tool_choice":{"type":"required"})", "tool_choice"},
      {tools + R"(,"tool_choice":{"type":"auto","disable_parallel_tool_use":1})", "tool_choice"},
      {tools + R"(,"tool_choice":"auto")", "tool_choice"},
      {R"("tool_choice":{"type":"any"})", "tool_choice"}};
  for (const auto& [fields, word] : wrong) {
    const std::string message = error_of(fields);
    EXPECT_NE(message.find(word), std::string::npos) << fields << message;
  }
}

TEST(MessagesInput, OptionsBecomeThoseOfAChat) {
  const ApiRequest request = read(R"({"max_tokens":9,"messages":[{"role":"user","content":"a"}],
      "system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=1"},
                {"type":"text","text":"Be short.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Sing."}],
      "thinking":{"type":"enabled","budget_tokens":1024,"display":"omitted"},"stop_sequences":["a","b","c","d","e"],
      "output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}}})");
  EXPECT_EQ(request.instructions, "Be short.\nSing.");
  EXPECT_EQ(request.enables_thinking, true);
  EXPECT_EQ(request.include_reasoning, false);
  EXPECT_EQ(request.reasoning_effort, "high");
  EXPECT_EQ(request.response_format["json_schema"]["schema"], Json({{"type", "object"}}));
  EXPECT_EQ(request.stop.size(), 5U);
  EXPECT_EQ(request.max_tokens, 9);
}

TEST(MessagesInput, TakesEachFieldWithinItsBoundsAlone) {
  struct Case {
    const char* field;
    std::vector<const char*> inside, outside;
  };
  const Case cases[] = {
      {"max_tokens", {"1", "100000"}, {"0", "-1", "\"9\""}},
      {"temperature", {"0", "1"}, {"-0.1", "2.1"}},
      {"top_p", {"0.1", "1"}, {"0", "1.1"}},
      {"top_k", {"0", "40"}, {"-2"}},
      {"system", {"\"s\"", "[]", "null"}, {"3", "[3]", R"([{"type":"image"}])", R"([{"type":"text"}])"}},
      {"stop_sequences", {"[]", "[\"a\"]"}, {"3", "[1]", "[\"\"]"}},
      {"stream", {"true", "false"}, {"1"}},
      {"thinking",
       {R"({"type":"disabled"})", R"({"type":"adaptive"})", R"({"type":"enabled","budget_tokens":1024})"},
       {"true", "{}", R"({"type":"between_tools"})", R"({"type":"enabled","budget_tokens":"a"})",
        R"({"type":"adaptive","display":"no"})"}},
      {"output_config",
       {"{}", R"({"effort":"max"})", R"({"effort":null,"format":null})"},
       {"3", R"({"effort":1})", R"({"format":{"type":"json_schema"}})", R"({"format":{"type":"text"}})",
        R"({"colour":1})"}},
      {"output_format", {R"({"type":"json_schema","schema":{}})", "null"}, {"{}", "3"}},
      {"context_management",
       {"{}", R"({"edits":[]})", R"({"edits":[{"type":"clear_thinking_20251015","keep":"all"}]})"},
       {"[]", R"({"edits":3})", R"({"edits":[3]})", R"({"edits":[{"type":"clear_tool_uses_20250919"}]})"}},
      {"metadata", {R"({"user_id":"u"})"}, {}},
      {"service_tier", {"\"auto\""}, {}},
      {"cache_control", {R"({"type":"ephemeral"})"}, {}},
      {"speed", {"\"fast\""}, {}},
      {"container", {"null"}, {"\"c\""}},
      {"mcp_servers", {"[]"}, {R"([{"type":"url","url":"a","name":"b"}])"}},
      {"thread", {"null"}, {"{}"}},
      {"compaction", {"null"}, {"{}"}},
      {"prefill", {"null"}, {"\"a\""}},
      {"fallbacks", {"[]"}, {R"([{"model":"a"}])"}},
      {"n", {"1"}, {"2"}},
      {"stop", {"[]"}, {"[\"a\"]"}},
      {"input", {"null"}, {"\"a\""}},
      {"instructions", {"null"}, {"\"a\""}},
      {"max_completion_tokens", {"null"}, {"5"}},
      {"max_output_tokens", {"null"}, {"5"}},
      {"response_format", {"null"}, {"{}"}},
      {"reasoning_effort", {"null"}, {"\"low\""}},
      {"parallel_tool_calls", {"null"}, {"false"}},
      {"logprobs", {"false"}, {"true"}},
      {"top_logprobs", {"0"}, {"2"}},
      {"prompt_logprobs", {"null"}, {"2"}}};
  for (const Case& one : cases)
    for (const Endpoint endpoint : {anthropic_messages, anthropic_count}) {
      const std::string begin = std::string("\"") + one.field + "\":";
      for (const char* value : one.inside) EXPECT_EQ(error_of(begin + value, endpoint), "") << begin << value;
      for (const char* value : one.outside) {
        const std::string message = error_of(begin + value, endpoint);
        EXPECT_NE(message.find(std::string("[") + one.field + "]"), std::string::npos) << begin << value << message;
      }
    }
}

TEST(MessagesInput, NamesTheFieldsThatAreMissing) {
  try {
    read("{}");
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_STREQ(error.what(), "[messages] is missing; [max_tokens] is missing");
  }
  EXPECT_THROW(read(R"({"messages":[{"role":"user","content":"a"}]})"), ApiError);
  EXPECT_NO_THROW(read(R"({"messages":[{"role":"user","content":"a"}]})", anthropic_count));
  EXPECT_EQ(read(R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}],"colour":1})").unknown,
            std::vector<std::string>{"colour"});
}

}  // namespace weft::messages_input_test
