// The table of fields: their types, their ranges, and the order of the checks.

#include "server/api_request.h"

#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/json_body.h"
#include "server/request_fields.h"

namespace weft::api_request_test {

struct Refusal {
  int status = 200;
  std::string type, parameter, message;
};

Refusal refusal_of(const std::string& json, Endpoint endpoint = completions) {
  try {
    const JsonBody body(json);
    check_fields(read_fields(body.object(), endpoint));
  } catch (const ApiError& error) {
    const Json said = error.body()["error"];
    return {error.status(), said["type"], said["param"].is_null() ? "" : said["param"].get<std::string>(),
            said["message"]};
  }
  return {};
}

std::string with(const std::string& field, const std::string& value) {
  return R"({"prompt":"a","messages":[{"role":"user"}],")" + field + "\":" + value + "}";
}

TEST(ApiRequest, TakesEachNumberWithinItsRangeAlone) {
  struct Case {
    const char* field;
    std::vector<const char*> inside, outside;
  };
  const Case cases[] = {
      {"temperature", {"0", "2", "0.5"}, {"-0.1", "2.1", "1e300"}},
      {"top_p", {"1", "0.001"}, {"0", "1.1", "-1"}},
      {"top_k", {"-1", "0", "40"}, {"-2", "3000000000"}},
      {"min_p", {"0", "1"}, {"-0.1", "1.1"}},
      {"presence_penalty", {"-2", "2"}, {"-2.1", "2.1"}},
      {"frequency_penalty", {"-2", "2"}, {"-2.1", "2.1"}},
      {"repetition_penalty", {"0.1", "2"}, {"0", "-1"}},
      {"n", {"1", "16384"}, {"0", "16385", "-1"}},
      {"max_tokens", {"1", "100"}, {"0", "-1"}},
      {"seed", {"0", "-1", "9223372036854775807", "-9223372036854775808"}, {}},
      {"truncate_prompt_tokens", {"-1", "0", "9"}, {"-2"}},
      {"stop", {"\"a\"", "[\"a\",\"b\"]", "[]"}, {"\"\"", "[\"\"]", R"(["a","b","c","d","e"])"}},
      {"truncation_side", {"\"left\"", "\"right\""}, {}},
      {"priority", {"0", "-5", "7"}, {}},
      {"cache_salt", {"\"a\""}, {"\"\"", "\"a/b\"", "\"a@b\"", "\"a\\\\b\"", "\"a\\u0000b\""}},
      {"best_of", {"1"}, {"2"}},
      {"logprobs", {"0", "5", "-1"}, {"-2"}},
      {"prompt_logprobs", {"0", "5", "-1"}, {"-2"}},
      {"min_tokens", {"0", "5"}, {"-1"}},
      {"stream_interval", {"1", "100"}, {"0"}},
      {"logit_bias", {"{}", R"({"0":-100,"7":1e3})"}, {}},
      {"allowed_token_ids", {"[1]"}, {"[]"}},
      {"bad_words", {"[]", "[\"a\"]"}, {"[\"\"]"}},
  };
  for (const Case& one : cases) {
    for (const char* value : one.inside)
      EXPECT_EQ(refusal_of(with(one.field, value)).status, 200) << one.field << " " << value;
    for (const char* value : one.outside) {
      const Refusal refusal = refusal_of(with(one.field, value));
      EXPECT_EQ(refusal.status, 400) << one.field << " " << value;
      EXPECT_EQ(refusal.type, "BadRequestError");
      EXPECT_EQ(refusal.parameter, one.field);
    }
  }
}

TEST(ApiRequest, NamesFieldsOfAWrongType) {
  const std::pair<const char*, const char*> cases[] = {
      {"temperature", "\"hot\""},
      {"n", "1.5"},
      {"n", "true"},
      {"seed", "9223372036854775808"},
      {"stop", "[1]"},
      {"truncation_side", "\"up\""},
      {"stream", "1"},
      {"stream", "\"yes\""},
      {"prompt", "3"},
      {"prompt", "[1,\"a\"]"},
      {"prompt", "[[1],[\"a\"]]"},
      {"prompt", "[-1]"},
      {"stop_token_ids", "{}"},
      {"stream_options", "[]"},
      {"stream_options", "{\"include_usage\":1}"},
      {"model", "[]"},
      {"logprobs", "true"},
      {"logit_bias", "[]"},
      {"logit_bias", R"({"a":1})"},
      {"logit_bias", R"({"-1":1})"},
      {"logit_bias", R"({"1.5":1})"},
      {"logit_bias", R"({"1":"a"})"},
      {"allowed_token_ids", "[\"a\"]"},
      {"bad_words", "\"a\""},
      {"include_stop_str_in_output", "1"},
      {"skip_special_tokens", "\"no\""},
  };
  for (const auto& [field, value] : cases) {
    const Refusal refusal = refusal_of(with(field, value));
    EXPECT_EQ(refusal.status, 400) << field << value;
    EXPECT_EQ(refusal.type, "Bad Request") << field << value;
    EXPECT_EQ(refusal.parameter, std::string("body.") + field) << value;
  }
  const std::pair<Endpoint, const char*> needed[] = {
      {completions, "body.prompt"}, {chat, "body.messages"}, {detokenize, "body.tokens"}};
  for (const auto& [endpoint, field] : needed) {
    const Refusal missing = refusal_of(R"({"model":"a","prompt":null})", endpoint);
    EXPECT_EQ(missing.type, "Bad Request");
    EXPECT_EQ(missing.parameter, field);
  }
  EXPECT_EQ(refusal_of("{}", tokenize).status, 200);
  const Refusal several = refusal_of(R"({"prompt":1,"n":"a","temperature":9,"stop":3})");
  EXPECT_EQ(several.parameter, "body.prompt");
  EXPECT_NE(several.message.find("[stop]"), std::string::npos) << several.message;
  EXPECT_EQ(several.message.find("[temperature]"), std::string::npos) << "types come before ranges";
}

// A field whose value asks for something that is not made must not be ignored.
TEST(ApiRequest, RefusesByNameWhatItDoesNotMake) {
  const std::tuple<Endpoint, const char*, const char*, int> cases[] = {
      {completions, "use_beam_search", "true", 501},
      {completions, "guided_json", "{}", 400},
      {completions, "guided_choice", "[]", 400},
      {completions, "suffix", "\"a\"", 400},
      {llama_completion, "mirostat", "2", 400},
      {llama_completion, "post_sampling_probs", "true", 501},
      {chat, "guided_regex", "\"a\"", 400},
      {chat, "functions", "[{\"name\":\"f\"}]", 400},
      {chat, "audio", "{}", 501},
  };
  for (const auto& [endpoint, field, value, status] : cases) {
    const Refusal refusal = refusal_of(with(field, value), endpoint);
    EXPECT_EQ(refusal.status, status) << field;
    EXPECT_EQ(refusal.parameter, field);
  }
  EXPECT_EQ(
      refusal_of(
          R"({"prompt":"a","use_beam_search":false,"suffix":null,"response_format":{"type":"text"},"guided_json":null})")
          .status,
      200);
  EXPECT_EQ(refusal_of(R"({"messages":[],"tools":null,"tool_choice":"none"})", chat).status, 200);
}

TEST(ApiRequest, ChecksCombinations) {
  EXPECT_EQ(refusal_of(R"({"prompt":"a","stream_options":{}})").parameter, "stream_options");
  EXPECT_EQ(refusal_of(R"({"prompt":"a","stream":true,"stream_options":{"include_usage":true}})").status, 200);
  EXPECT_EQ(refusal_of(R"({"messages":[],"add_generation_prompt":true,"continue_final_message":true})", chat).parameter,
            "continue_final_message");
  EXPECT_EQ(refusal_of(R"({"prompt":"a","max_tokens":0,"echo":true})").status, 200);
  EXPECT_EQ(refusal_of(R"({"messages":[],"max_tokens":0,"echo":true})", chat).parameter, "max_tokens");
  EXPECT_EQ(refusal_of(R"({"prompt":["a","b"],"n":10000})").parameter, "n");
  EXPECT_EQ(refusal_of(R"({"messages":[],"top_logprobs":1})", chat).parameter, "top_logprobs");
  EXPECT_EQ(refusal_of(R"({"messages":[],"top_logprobs":1,"logprobs":false})", chat).parameter, "top_logprobs");
  EXPECT_EQ(refusal_of(R"({"messages":[],"top_logprobs":0})", chat).status, 200);
  EXPECT_EQ(refusal_of(R"({"messages":[],"top_logprobs":1,"logprobs":true})", chat).status, 200);
  EXPECT_EQ(refusal_of(R"({"prompt":"a","stream":true,"prompt_logprobs":1})").parameter, "prompt_logprobs");
  EXPECT_EQ(refusal_of(R"({"prompt":"a","stream":true,"prompt_logprobs":0})").status, 200);
}

TEST(ApiRequest, ChecksToolsAndTheirChoice) {
  const std::string function = R"({"type":"function","function":{"name":"f_1-X","parameters":{"type":"object"}}})";
  const auto refusal = [](const std::string& fields) { return refusal_of("{\"messages\":[]," + fields + "}", chat); };
  const std::string tools = "\"tools\":[" + function + "]";
  EXPECT_EQ(refusal(tools).status, 200);
  for (const char* wrong :
       {"{}", "[3]", R"([{"type":"function"}])", R"([{"type":"retrieval","function":{"name":"f"}}])",
        R"([{"type":"function","function":{"name":3}}])",
        R"([{"type":"function","function":{"name":"f","parameters":[]}}])"}) {
    EXPECT_EQ(refusal(std::string("\"tools\":") + wrong).type, "Bad Request") << wrong;
    EXPECT_EQ(refusal(std::string("\"tools\":") + wrong).parameter, "body.tools") << wrong;
  }
  const std::string names[] = {"", "a b", "\u00e9", std::string(65, 'a')};
  for (const std::string& name : names)
    EXPECT_EQ(refusal(R"("tools":[{"type":"function","function":{"name":")" + name + "\"}}]").parameter, "tools")
        << name;
  EXPECT_EQ(refusal("\"tools\":[]").parameter, "tools");
  EXPECT_EQ(refusal("\"tools\":[" + function + "," + function + "]").parameter, "tools") << "the same name twice";
  for (const char* choice :
       {"\"none\"", "\"auto\"", "\"required\"", R"({"type":"function","function":{"name":"f_1-X"}})"})
    EXPECT_EQ(refusal(tools + ",\"tool_choice\":" + choice).status, 200) << choice;
  for (const char* choice : {"\"any\"", "3", "{}", R"({"type":"function"})", R"({"type":"function","function":{}})"})
    EXPECT_EQ(refusal(tools + ",\"tool_choice\":" + choice).parameter, "body.tool_choice") << choice;
  EXPECT_EQ(refusal(tools + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})").parameter,
            "tool_choice.function.name");
  EXPECT_EQ(refusal("\"tool_choice\":\"auto\"").parameter, "tool_choice") << "there are no tools";
}

TEST(ApiRequest, ReadsJsonStrictly) {
  const auto nested = [](int levels) {
    // The object is the first level.
    return R"({"prompt":"a","x":)" + std::string(static_cast<std::size_t>(levels - 1), '[') + "1" +
           std::string(static_cast<std::size_t>(levels - 1), ']') + "}";
  };
  EXPECT_EQ(refusal_of(nested(128)).status, 200);
  const auto nested_empty = [&](int levels) {
    std::string json = nested(levels);
    return json.erase(json.find('1'), 1);
  };
  EXPECT_EQ(refusal_of(nested_empty(128)).status, 200);
  EXPECT_EQ(refusal_of(R"({"prompt":"[[{\\\"[","x":)" + nested(127) + "}").status, 200) << "brackets of a text";
  const std::string bad[] = {"",
                             "[]",
                             "3",
                             "{",
                             "{}{}",
                             "{} x",
                             R"({"n":01})",
                             R"({"n":NaN})",
                             R"({"n":Infinity})",
                             R"({"temperature":1e999})",
                             R"({"n":1,})",
                             R"({'n':1})",
                             R"({"stop":"\ud800"})",
                             "\xEF\xBB\xBF{}",
                             "{\"stop\":\"\xff\"}",
                             nested(129),
                             nested_empty(129),
                             nested(100000)};
  for (const std::string& json : bad) {
    const Refusal refusal = refusal_of(json);
    EXPECT_EQ(refusal.status, 400) << json.substr(0, 50);
    EXPECT_EQ(refusal.type, "Bad Request") << json.substr(0, 50);
    EXPECT_EQ(refusal.parameter, "body") << json.substr(0, 50);
  }
}

TEST(ApiRequest, TheLastOfSeveralEqualKeysCounts) {
  const JsonBody body(R"({"n":1,"n":3,"prompt":"a","prompt":["b","c"],"frobnicate":1})");
  const ApiRequest request = read_fields(body.object(), completions);
  EXPECT_EQ(request.n, 3);
  ASSERT_EQ(request.prompts.size(), 2U);
  EXPECT_EQ(std::get<PromptText>(request.prompts[0]), "b");
  EXPECT_EQ(request.unknown, std::vector<std::string>{"frobnicate"});
}

TEST(ApiRequest, EachFieldHasOneRowForAnEndpoint) {
  for (const FieldRow& row : field_table())
    for (const FieldRow& other : field_table())
      EXPECT_TRUE(&row == &other || row.name != other.name || (row.endpoints & other.endpoints) == 0) << row.name;
}

TEST(ApiRequest, AMessageNamesAtMostTenWrongFields) {
  const char* fields[] = {"prompt", "n",          "seed",      "stop",           "stream",         "logprobs",
                          "echo",   "ignore_eos", "bad_words", "stop_token_ids", "stream_options", "logit_bias"};
  std::string json;
  for (const char* field : fields) json += std::string(json.empty() ? "{" : ",") + "\"" + field + R"(":{"wrong":{}})";
  const std::string message = refusal_of(json + "}").message;
  std::size_t named = 0;
  for (const char* field : fields)
    if (message.find("[" + std::string(field) + "]") != std::string::npos) ++named;
  EXPECT_EQ(named, 10U) << message;
}

TEST(ApiRequest, MessagesAreCutAtACharacter) {
  const ApiError error = wrong_value(std::string(999, 'a') + "\u00e9\u00e9", "x");
  EXPECT_EQ(std::string(error.what()), std::string(999, 'a'));
}

}  // namespace weft::api_request_test
