// The table of fields: their types, their ranges, and the order of the checks.

#include "server/api_request.h"

#include <limits>

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

std::string salt_of(int characters) {
  std::string salt = "\"";
  for (int i = 0; i < characters; ++i) salt += "\u00e9";
  return salt + "\"";
}
const std::string kLongestSalt = salt_of(128), kLongerSalt = salt_of(129);

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
      // 128 characters of two bytes each.
      {"cache_salt",
       {"\"a\"", kLongestSalt.c_str()},
       {kLongerSalt.c_str(), "\"\"", "\"a/b\"", "\"a@b\"", "\"a\\\\b\"", "\"a\\u0000b\""}},
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
      {"prompt", "[1.5]"},
      {"prompt", "[true]"},
      {"stop_token_ids", "{}"},
      {"stream_options", "[]"},
      {"stream_options", "{\"include_usage\":1}"},
      {"model", "[]"},
      {"logprobs", "true"},
      {"logit_bias", "[]"},
      {"logit_bias", R"({"a":1})"},
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

TEST(ApiRequest, TheLastOfSeveralEqualKeysCountsWhateverTheOthersAre) {
  const auto read = [](const char* json) {
    const JsonBody body(json);
    return read_fields(body.object(), completions);
  };
  EXPECT_FALSE(read(R"({"prompt":"a","max_tokens":3,"max_tokens":null})").max_tokens);
  EXPECT_EQ(read(R"({"prompt":"a","temperature":"x","temperature":0})").temperature, 0);
  EXPECT_FALSE(read(R"({"prompt":"a","suffix":"x","suffix":null})").refusal);
  EXPECT_EQ(refusal_of(R"({"prompt":"a","prompt":null})").parameter, "body.prompt");
  const ApiRequest options =
      read(R"({"prompt":"a","stream":true,"stream_options":{"include_usage":true},"stream_options":{}})");
  EXPECT_TRUE(options.has_stream_options);
  EXPECT_FALSE(options.include_usage);
  EXPECT_FALSE(read(R"({"prompt":"a","stream_options":{"include_usage":true,"include_usage":null}})").include_usage);
  EXPECT_EQ(read(R"({"prompt":"a","logit_bias":{"5":"x","5":1}})").logit_bias, (std::map<int, double>{{5, 1}}));
}

TEST(ApiRequest, NamesTheItemOfAListThatIsWrong) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"prompt", R"([1,"a"])", "[prompt] item 1 must be a token id, but is \"a\""},
      {"prompt", R"([[1],[2,"a"]])", "[prompt] item 1 of item 1 must be a token id, but is \"a\""},
      {"prompt", R"(["a",{}])", "[prompt] item 1 must be a text or a list of token ids, but is an object"},
      {"stop", R"(["a",1])", "[stop] item 1 must be a text, but is 1"},
      {"stop_token_ids", "[3,1.5]", "[stop_token_ids] item 1 must be a token id, but is 1.5"},
      {"logit_bias", R"({"5":1,"x":1})", "[logit_bias] must have token ids as keys, but has \"x\""},
      {"logit_bias", R"({"5":[]})", "[logit_bias] the bias of 5 must be a number, but is a list"},
  };
  for (const auto& [field, value, message] : cases) EXPECT_EQ(refusal_of(with(field, value)).message, message);
}

// check_token() refuses them by their range.
TEST(ApiRequest, ReadsIdsThatNoVocabularyHas) {
  const JsonBody body(
      R"({"prompt":[-1,10000000000,-10000000000,1000000000000000000000],"logit_bias":{"-1":1,"99999999999":1}})");
  const ApiRequest request = read_fields(body.object(), completions);
  constexpr int kLeast = std::numeric_limits<int>::min(), kMost = std::numeric_limits<int>::max();
  EXPECT_EQ(std::get<PromptIds>(request.prompts[0]), (PromptIds{-1, kMost, kLeast, kMost}));
  EXPECT_EQ(request.logit_bias, (std::map<int, double>{{-1, 1}, {kMost, 1}}));
}

TEST(ApiRequest, ChecksTheTypesWithinMessages) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "message 0 must have a role"},
      {R"({"role":1})", "message 0 must have a role"},
      {R"(3)", "message 0 must be an object, but is 3"},
      {R"({"role":"user","content":1})", "message 0 must have a content that is a text or a list of parts, but has 1"},
      {R"({"role":"user","content":{}})", "but has an object"},
      {R"({"role":"user","content":["a"]})", "message 0, part 0 of the content must be an object, but is \"a\""},
      {R"({"role":"user","content":[{"type":"text"}]})", "part 0 of the content must have a text, but has none"},
      {R"({"role":"user","content":[{"text":5}]})", "part 0 of the content must have a text, but has 5"},
      {R"({"role":"user","content":[{"type":5,"text":"a"}]})", "must have a type that is a text, but has 5"},
      {R"({"role":"assistant","tool_calls":"x"})", "message 0 must have tool_calls that are a list, but has \"x\""},
      {R"({"role":"assistant","tool_calls":{"a":1}})", "but has an object"},
      {R"({"role":"assistant","tool_calls":[null]})", "message 0, call 0 must be an object, but is null"},
      {R"({"role":"assistant","tool_calls":[{}]})", "call 0 must have a function that is an object"},
      {R"({"role":"assistant","tool_calls":[{"function":true}]})", "call 0 must have a function that is an object"},
      {R"({"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}]})", "must have a function with a name"},
      {R"({"role":"assistant","tool_calls":[{"function":{"name":["a"]}}]})", "must have a function with a name"},
      {R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":true}}]})",
       "must have arguments that are the text of a JSON object, but has true"},
  };
  for (const auto& [message, sentence] : cases) {
    const Refusal refusal = refusal_of("{\"messages\":[" + std::string(message) + "]}", chat);
    EXPECT_EQ(refusal.type, "Bad Request") << message;
    EXPECT_EQ(refusal.parameter, "body.messages") << message;
    EXPECT_NE(refusal.message.find(sentence), std::string::npos) << message << ": " << refusal.message;
  }
  for (const char* message :
       {R"({"role":"user","content":null})", R"({"role":"assistant","tool_calls":null})",
        R"({"role":"assistant","tool_calls":[{"function":{"name":"f"}},{"function":{"name":"f","arguments":{}}}]})"})
    EXPECT_EQ(refusal_of("{\"messages\":[" + std::string(message) + "]}", chat).status, 200) << message;
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
