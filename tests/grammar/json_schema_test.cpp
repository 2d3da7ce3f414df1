#include "grammar/json_schema.h"

#include <gtest/gtest.h>

#include "tests/grammar/document_generator.h"
#include "tests/grammar/grammar_texts.h"
#include "tests/grammar/small_validator.h"
#include "tests/thrown_message.h"

namespace weft::json_schema_test {

using grammar::CompiledGrammar;
using grammar::schema_grammar;
using grammar::SchemaOptions;

struct SchemaRow {
  const char* schema;
  std::vector<const char*> valid, invalid;  // documents
};

const SchemaRow kSchemas[] = {
    {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]})",
     {R"({"a":1})", R"({"a":-12,"b":"x\"\\\u00e9"})", R"({"a":3,"other":[1,{"x":null}]})"},
     {R"({})", R"({"b":"x"})", R"({"a":"1"})", R"({"a":1.5})", R"({"a":1,"b":2})", R"({"a":01})",
      R"({"a":1,"a":"x"})"}},
    {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},
         "required":["b"],"additionalProperties":false})",
     {R"({"b":null})", R"({"a":null,"b":null})", R"({"b":null,"c":null})", R"({"a":null,"b":null,"c":null})"},
     {R"({"a":null})", R"({"b":null,"d":1})", R"({"b":null,})", R"({,"b":null})"}},
    {R"({"additionalProperties":{"type":"integer"},"maxProperties":2})",
     {R"({})", R"({"x":1,"y":2})"},
     {R"({"x":"1"})", R"({"x":1,"y":2,"z":3})", "[]"}},
    {R"({"type":"object","minProperties":1,"maxProperties":2})",
     {R"({"x":1})", R"({"x":1,"y":[]})"},
     {R"({})", R"({"x":1,"y":2,"z":3})"}},
    {R"({"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"required":["b"],
         "additionalProperties":false,"minProperties":2,"maxProperties":2})",
     {R"({"a":null,"b":null})", R"({"b":null,"c":null})"},
     {R"({})", R"({"b":null})", R"({"a":null,"c":null})", R"({"a":null,"b":null,"c":null})"}},
    {R"({"properties":{"a":{"type":"null"}},"minProperties":1,"maxProperties":2})",
     {R"({"a":null})", R"({"x":1})", R"({"a":null,"x":1})", R"({"x":1,"y":2})"},
     {R"({})", R"({"a":1})", R"({"a":null,"x":1,"y":2})", R"({"x":1,"y":2,"z":3})"}},
    {R"({"type":"object","patternProperties":{"^x-":{"type":"integer"},"[0-9]$":{"type":"integer"}},
         "additionalProperties":false})",
     {R"({"x-a":1})", R"({"b5":2})", R"({})"},
     {R"({"ab":1})", R"({"x-a":"q"})"}},
    {R"({"type":"object","patternProperties":{"^x-":{"type":"integer"}},"required":["x-a"],
         "additionalProperties":false})",
     {R"({"x-a":1})", R"({"x-a":1,"x-b":2})"},
     {R"({})", R"({"x-b":1})", R"({"x-a":"q"})", R"({"x-a":1,"b":2})"}},
    {R"({"type":"object","properties":{"x-a":{"type":"integer","minimum":3},"b":{"type":"null"}},"required":["x-a","c"],
         "patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":{"type":"string"}})",
     {R"({"x-a":3,"c":"q"})", R"({"x-a":4,"b":null,"c":"","x-b":1,"d":"x"})"},
     {R"({"x-a":1,"c":"q"})", R"({"x-a":3})", R"({"x-a":3,"c":"q","x-b":"1"})", R"({"x-a":3,"c":"q","d":1})"}},
    {R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3})",
     {"[true]", "[true,false,true]"},
     {"[]", "[true,true,true,true]", "[1]"}},
    {R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"}})",
     {"[]", "[1]", R"([1,"a"])", R"([1,"a",null,null])"},
     {R"(["a"])", R"([1,"a",1])", "{}"}},
    {R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":1})",
     {"[1]", R"([1,"a"])"},
     {"[]", R"([1,"a",null])"}},
    {R"({"type":"string","minLength":2,"maxLength":4})", {R"("ab")", R"("äöüß")", R"("😀😀")"}, {R"("a")", R"("abcde")"}},
    {R"({"type":"string","pattern":"^\\d{3}-\\w+$","maxLength":8})",
     {R"("123-a")", R"("123-abcd")"},
     {R"("123-")", R"("123-abcde")", R"("x123-a")"}},
    {R"({"type":"string","pattern":"^(ab)*$","minLength":3,"maxLength":6})",
     {R"("abab")", R"("ababab")"},
     {R"("ab")", R"("abababab")", R"("aba")", R"("")"}},
    {R"({"type":"string","pattern":"^(aaa|b{5})*$","minLength":7,"maxLength":8})",
     {R"("aaabbbbb")", R"("bbbbbaaa")"},
     {R"("aaaaaa")", R"("aaaaaaaaa")", R"("bbbbbbbbbb")"}},
    {R"({"type":"string","pattern":"[^a]$","minLength":3})",
     {R"("aab")", R"("\u00e9\ud83d\ude00\n")", R"("ééé")"},
     {R"("ab")", R"("aaa")", R"("\ud83d\ude00b")"}},
    {R"({"pattern":"b"})", {R"("b")", R"("a\"b\n")"}, {R"("")", R"("ac")", "1"}},
    {R"({"type":"integer","minimum":-5,"maximum":17})", {"-5", "0", "9", "10", "17"}, {"-6", "18", "100", "1.5"}},
    {R"({"type":"integer","exclusiveMinimum":0,"multipleOf":7})", {"7", "14", "700"}, {"0", "1", "13", "-7"}},
    {R"({"type":"integer","minimum":100,"exclusiveMaximum":1235})",
     {"100", "999", "1000", "1234"},
     {"99", "1235", "9999"}},
    {R"({"type":"number","minimum":0,"maximum":1})", {"0", "1", "0.5", "1.0", "0.999"}, {"1.01", "-0.1", "2", "1.5"}},
    {R"({"type":"number","exclusiveMinimum":-1.5,"exclusiveMaximum":2.25})",
     {"-1.25", "0", "2.2", "1.75", "-1"},
     {"-1.5", "2.25", "2.5", "-2", "-1.51"}},
    {R"({"type":"number","minimum":12.345})", {"12.345", "12.4", "13", "100"}, {"12.344", "12.3", "12", "-13"}},
    {R"({"type":"number","maximum":-0.5})", {"-0.5", "-1", "-10.25"}, {"0", "-0.25", "1"}},
    {R"({"enum":["a",1,null,{"x":[1,2]},"é\n"]})", {"\"a\"", "1", "null", R"({"x":[1,2]})"}, {"\"b\"", "2"}},
    {R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"}},
    {R"({"enum":[1,5,9,"a","abc",null,18446744073709551615],"minimum":4,"maximum":8,"maxLength":2})",
     {"5", "\"a\"", "null"},
     {"1", "9", "\"abc\"", "18446744073709551615"}},
    {R"({"enum":["ab","é\n","b",[1],[1,2],{"a":1},{"b":"x"},{}],"pattern":"^[^b]","minItems":2,"required":["b"],
         "properties":{"b":{"anyOf":[{"type":"null"},{"minLength":1}]}}})",
     {"\"ab\"", "\"é\\n\"", "[1,2]", R"({"b":"x"})"},
     {"\"b\"", "[1]", R"({"a":1})", "{}"}},
    {R"({"const":{"a":[true,"x"]}})", {R"({"a":[true,"x"]})"}, {"{}"}},
    {R"({"type":["string","null"],"maxLength":1})", {"\"a\"", "null"}, {"1", "\"ab\""}},
    {R"({"anyOf":[{"type":"integer"},{"type":"array","items":{"const":1}}]})", {"3", "[1,1]"}, {"\"a\"", "[2]"}},
    {R"({"type":"object","required":["t"],"oneOf":[
         {"properties":{"t":{"const":"a"},"v":{"type":"integer"}},"required":["v"]},
         {"properties":{"t":{"const":"b"},"v":{"type":"string"}},"required":["t","v"]}]})",
     {R"({"t":"a","v":1})", R"({"t":"b","v":"x"})"},
     {R"({"t":"a","v":"x"})", R"({"t":"c","v":1})", R"({"v":1})"}},
    {R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},
         {"properties":{"a":{"minimum":3},"b":{"type":"string"}},"required":["b"]}]})",
     {R"({"a":3,"b":"x"})"},
     {R"({"a":1,"b":"x"})", R"({"a":3})", R"({"b":"x"})"}},
    {R"({"type":"object","properties":{"a":{},"c":{"type":"string","description":"x"}},"required":["c","d"]})",
     {R"({"c":"","d":1})", R"({"a":[1],"c":"q","d":{}})"},
     {R"({"c":""})"}},
};

TEST(JsonSchema, AllowsExactlyTheDocumentsOfTheSchema) {
  for (const SchemaRow& row : kSchemas) {
    const Json schema = parse_json(row.schema);
    const grammar::Grammar made = schema_grammar(schema, {});
    for (const char* document : row.valid) {
      EXPECT_TRUE(is_valid(parse_json(document), schema)) << row.schema << " " << document;
      EXPECT_TRUE(matches(made, document)) << row.schema << " " << document;
      const bool is_listed = schema.contains("enum") || schema.contains("const");
      const std::string spaced = is_listed ? document : json_text(parse_json(document), 2);
      EXPECT_TRUE(matches(made, spaced)) << row.schema << " " << spaced;
    }
    for (const char* document : row.invalid) EXPECT_FALSE(matches(made, document)) << row.schema << " " << document;
  }
}

TEST(JsonSchema, LeadsRandomTokensToValidDocuments) {
  std::mt19937 random(11);
  for (const SchemaRow& row : kSchemas) {
    const Json schema = parse_json(row.schema);
    TextWriter writer(schema_grammar(schema, {}), small_vocabulary());
    for (int i = 0; i < 20; ++i) {
      const std::string text = writer.write(random);
      const Json document = parse_json(text);
      ASSERT_FALSE(document.is_discarded()) << row.schema << " " << text;
      EXPECT_TRUE(is_valid(document, schema)) << row.schema << " " << text;
    }
  }
}

// Each begin of a document that is allowed is allowed, too.
void expect_prefixes(const grammar::Grammar& made, const std::string& text) {
  const CompiledGrammar compiled(made);
  grammar::ParserStates states(compiled);
  grammar::StateId state = states.start();
  for (std::size_t i = 0; i < text.size(); ++i) {
    state = states.step(state, static_cast<std::uint8_t>(text[i]));
    ASSERT_NE(state, grammar::kDead) << text.substr(0, i + 1) << " of " << text;
  }
  EXPECT_TRUE(states.may_end(state)) << text;
}

TEST(JsonSchema, AllowsEveryValidDocumentAndItsPrefixes) {
  std::mt19937 random(12);
  int without_documents = 0;
  for (const SchemaRow& row : kSchemas) {
    const Json schema = parse_json(row.schema);
    const grammar::Grammar made = schema_grammar(schema, {});
    const bool is_listed = schema.contains("enum") || schema.contains("const");
    int valid = 0;
    for (int i = 0; i < 40; ++i) {
      const Json document = drawn_document(schema, random);
      if (!is_valid(document, schema)) continue;
      ++valid;
      expect_prefixes(made, json_text(document));
      if (!is_listed) expect_prefixes(made, json_text(document, static_cast<int>(random() % 4)));
    }
    without_documents += valid == 0 ? 1 : 0;
  }
  EXPECT_LE(without_documents, 3) << "patterns are all that the generator cannot draw";
}

TEST(JsonSchema, FollowsReferencesAndRecursion) {
  const Json schema = parse_json(R"({"$defs":{"no~de/x":{"type":"object","properties":{"v":{"type":"integer"},
      "next":{"anyOf":[{"$ref":"#/$defs/no~0de~1x"},{"type":"null"}]}},"required":["v","next"],
      "additionalProperties":false}},"$ref":"#/$defs/no~0de~1x"})");
  const grammar::Grammar made = schema_grammar(schema, {});
  EXPECT_TRUE(matches(made, R"({"v":1,"next":{"v":2,"next":null}})"));
  EXPECT_FALSE(matches(made, R"({"v":1,"next":{"v":2}})"));
  const grammar::Grammar encoded = schema_grammar(
      parse_json(R"({"$defs":{"x y/é%":{"type":"null"}},"items":{"$ref":"#/$defs/x%20y~1%C3%a9%25"}})"), {});
  EXPECT_TRUE(matches(encoded, "[null]"));
  const grammar::Grammar list = schema_grammar(parse_json(R"({"items":{"$ref":"#"}})"), {});
  EXPECT_TRUE(matches(list, "[[],[[]]]"));
  EXPECT_FALSE(matches(list, "[1]"));
}

TEST(JsonSchema, EnforcesFormats) {
  const SchemaRow formats[] = {
      {"date", {"2024-02-29", "1999-12-31"}, {"2023-02-29", "2024-13-01", "2024-04-31", "0000-01-01"}},
      {"time", {"12:30:00Z", "23:59:59.5+01:00"}, {"24:00:00Z", "12:00"}},
      {"date-time", {"2024-02-29T12:00:00Z"}, {"2024-02-29"}},
      {"email", {"a@b.co", "x.y+z@sub.example.org"}, {"a", "a@", "@b.c", "a..b@c.d"}},
      {"hostname", {"example.com", "a"}, {"-a.com", "a..b"}},
      {"ipv4", {"1.2.3.4", "255.255.255.255"}, {"256.1.1.1", "1.2.3", "01.2.3.4"}},
      {"ipv6", {"::", "::1", "1:2:3:4:5:6:7:8", "fe80::1:2"}, {"1::2::3", "12345::", "1:2:3"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"123"}},
      {"uri", {"http://example.com/a?b=c#d", "mailto:a@b.c", "urn:x:y"}, {"example", "//a"}},
  };
  for (const SchemaRow& row : formats) {
    const grammar::Grammar made = schema_grammar(Json{{"type", "string"}, {"format", row.schema}}, {});
    for (const char* text : row.valid) EXPECT_TRUE(matches(made, json_text(text))) << row.schema << " " << text;
    for (const char* text : row.invalid) EXPECT_FALSE(matches(made, json_text(text))) << row.schema << " " << text;
  }
}

TEST(JsonSchema, BoundsWhiteSpace) {
  const Json schema =
      parse_json(R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"null"}}},"required":["a"]})");
  const grammar::Grammar made = schema_grammar(schema, {});
  for (const char* text : {R"({"a":[]})", R"({"a": [null, null]})", "{\n  \"a\": [\n    null,\n    null\n  ]\n}"})
    EXPECT_TRUE(matches(made, text)) << text;
  for (const char* text : {R"({"a":  []})", "{\n\n\"a\":[]}", R"({"a":[] })", " {\"a\":[]}", "{\"a\":[]}\n",
                           "{\n                     \"a\":[]}"})
    EXPECT_FALSE(matches(made, text)) << text;
  const grammar::Grammar compact = schema_grammar(schema, {.white_space = {.is_allowed = false}});
  EXPECT_TRUE(matches(compact, R"({"a":[null,null]})"));
  EXPECT_FALSE(matches(compact, R"({"a": []})"));
  for (const char* pattern : {"x", "[ x]*", "\\s", "\\u00a0", ".*"}) {
    const std::string message =
        message_of([&] { schema_grammar(schema, {.white_space = {.pattern = std::string(pattern)}}); });
    EXPECT_NE(message.find("whitespace_pattern"), std::string::npos) << pattern << ": " << message;
  }
  for (const char* pattern : {"", "[ \\n\\t\\r]*", "( |\\n {0,8})?"})
    EXPECT_TRUE(matches(schema_grammar(schema, {.white_space = {.pattern = std::string(pattern)}}), R"({"a":[]})"));
  const grammar::Grammar given = schema_grammar(schema, {.white_space = {.pattern = " {2}"}});
  EXPECT_TRUE(matches(given, R"({  "a":  []  })"));
  EXPECT_FALSE(matches(given, R"({"a":[]})"));
}

TEST(JsonSchema, ClosesObjectsIfAsked) {
  const Json schema = parse_json(R"({"properties":{"a":{"properties":{"b":{}}}}})");
  EXPECT_TRUE(matches(schema_grammar(schema, {}), R"({"a":{"c":1},"d":2})"));
  const grammar::Grammar closed = schema_grammar(schema, {.closes_objects = true});
  EXPECT_TRUE(matches(closed, R"({"a":{"b":1}})"));
  EXPECT_FALSE(matches(closed, R"({"a":{"c":1}})"));
  EXPECT_FALSE(matches(closed, R"({"d":2})"));
}

TEST(JsonSchema, NullAsSchemaIsAnyObject) {
  const grammar::Grammar made = schema_grammar(nullptr, {});
  EXPECT_TRUE(matches(made, R"({"a":[1.5e-3,"\ud83d\ude00",{"b":{}}]})"));
  for (const char* text : {"[]", "1", R"({"a":"\ud83d"})", "{\"a\":\"\n\"}", R"({"a":1e999})"})
    EXPECT_FALSE(matches(made, text)) << text;
}

TEST(JsonSchema, RefusesByNameWhatItDoesNotEnforce) {
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {R"({"properties":{"a/b":{"not":{}}}})", {"#/properties/a", "not"}},
      {R"({"items":{"if":{}}})", {"#/items", "\"if\""}},
      {R"({"uniqueItems":true})", {"uniqueItems"}},
      {R"({"contains":{}})", {"contains"}},
      {R"({"propertyNames":{}})", {"propertyNames"}},
      {R"({"unevaluatedProperties":false})", {"unevaluatedProperties"}},
      {R"({"dependentSchemas":{}})", {"dependentSchemas"}},
      {R"({"type":"number","multipleOf":0.5})", {"multipleOf"}},
      {R"({"type":"integer","multipleOf":101})", {"multipleOf"}},
      {R"({"$ref":"http://x/y"})", {"$ref"}},
      {R"({"$ref":"#/nothing"})", {"$ref", "nothing"}},
      {R"({"$ref":"#"})", {"\"#\"", "$ref", "no text matches"}},
      {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", {"left-recursive"}},
      {R"({"type":"strin"})", {"strin"}},
      {R"_({"type":"string","pattern":"(?=a)"})_", {"pattern", "look-around"}},
      {R"({"type":"string","format":"dat"})", {"format", "\"date\""}},
      {R"({"type":"string","minLength":3,"maxLength":2})", {"maxLength"}},
      {R"({"type":"string","pattern":"^abc$","maxLength":2})", {"no string"}},
      {R"({"type":"integer","minimum":2,"maximum":1})", {"no number"}},
      {R"({"type":"integer","minimum":"2"})", {"minimum", "a number"}},
      {R"({"minItems":3,"maxItems":2})", {"maxItems"}},
      {R"({"properties":{"a":{}},"required":["b"],"additionalProperties":false})", {"required", "\"b\""}},
      {R"({"properties":{"a":{}},"minProperties":2})", {"minProperties above 1"}},
      {R"({"properties":{"a":{}},"minProperties":2,"additionalProperties":false})", {"minProperties asks for more"}},
      {R"({"properties":{"a":{},"b":{}},"required":["a","b"],"maxProperties":1})", {"maxProperties must be"}},
      {R"({"type":"object","minProperties":2})", {"minProperties above 1"}},
      {R"({"allOf":[{"additionalProperties":false},{"patternProperties":{"b":{}}}]})", {"allOf", "additionalProp"}},
      {R"({"patternProperties":{"^a":{}},"required":["b"],"additionalProperties":false})", {"required", "\"b\""}},
      {R"({"patternProperties":{"^a":{"type":"null"},"b$":{}}})", {"#/patternProperties", "another pattern"}},
      {R"({"oneOf":[{"type":"string"},{"type":["string","null"]}]})", {"oneOf", "anyOf"}},
      {R"({"enum":["a"],"minLength":2})", {"enum, minLength", "no listed value"}},
      {R"({"enum":[1],"type":"string"})", {"enum"}},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", {"allOf", "pattern"}},
      {R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}}}]})", {"allOf"}},
      {R"({"allOf":[{"type":"string"},{"type":"null"}]})", {"type"}},
      {R"({"properties":[]})", {"properties", "an object"}},
      {R"(false)", {"no text matches"}},
  };
  for (const auto& [schema, words] : cases) {
    const std::string message = message_of([&] { CompiledGrammar{schema_grammar(parse_json(schema), {})}; });
    for (const char* word : words) EXPECT_NE(message.find(word), std::string::npos) << schema << ": " << message;
  }
}

TEST(JsonSchema, LimitsNestingAndSize) {
  Json deep = true;
  for (int i = 0; i < 100; ++i) deep = Json{{"type", "array"}, {"items", deep}};
  EXPECT_NE(message_of([&] { schema_grammar(deep, {}); }).find("nested"), std::string::npos);
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {R"({"items":{"items":{"const":1},"maxItems":1000000}})", {"#/items", "maxItems needs more than 50000 states"}},
      {R"_({"items":{"pattern":"a(a|b){20}$","maxLength":100}})_", {"#/items", "pattern, maxLength needs more than"}},
      {R"({"properties":{"a":{"pattern":"a","minLength":100000000}}})", {"#/properties/a", "pattern, minLength needs"}},
      {R"({"properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"$defs":{"b":{"items":{"$ref":"#/$defs/b"},
         "minItems":1}}})",
       {"#/$defs/b", "minItems", "no text matches"}},
  };
  for (const auto& [schema, words] : cases) {
    const std::string message = message_of([&] { CompiledGrammar{schema_grammar(parse_json(schema), {})}; });
    for (const char* word : words) EXPECT_NE(message.find(word), std::string::npos) << schema << ": " << message;
  }
}

TEST(JsonSchema, TakesManyProperties) {
  Json properties = Json::object(), required = Json::array();
  std::string document;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "p" + std::to_string(i);
    properties.get_ref<Json::object_t&>().emplace_back(name, Json{{"type", "null"}});
    required.push_back(name);
    document += (i == 0 ? "{\"" : ",\"") + name + "\":null";
  }
  const Json schema{{"properties", properties}, {"required", required}, {"additionalProperties", false}};
  const grammar::Grammar made = schema_grammar(schema, {});
  EXPECT_TRUE(matches(made, document + "}"));
  EXPECT_FALSE(matches(made, document));
}

// Any of them may be absent: as one automaton this would have states for each pair of them.
TEST(JsonSchema, TakesManyPropertiesThatMayBeAbsent) {
  const auto properties = [](int count) {
    Json properties = Json::object();
    for (int i = 0; i < count; ++i)
      properties.get_ref<Json::object_t&>().emplace_back("p" + std::to_string(i), Json{{"type", "null"}});
    return properties;
  };
  const Json schema{{"properties", properties(2000)}, {"additionalProperties", false}};
  const CompiledGrammar compiled(schema_grammar(schema, {}));
  grammar::ParserStates states(compiled);
  const auto is_valid = [&](const char* text) { return states.may_end(state_after(states, text)); };
  for (const char* valid :
       {"{}", R"({"p0":null})", R"({"p1999": null})", "{\"p7\":null,\n \"p70\":null,\"p1234\":null}"})
    EXPECT_TRUE(is_valid(valid)) << valid;
  for (const char* wrong : {"{", R"({,"p0":null})", R"({"p2000":null})", R"({"p1":null,"p0":null})",
                            R"({"p5":null,"p5":null})", R"({"p5":null,})"})
    EXPECT_FALSE(is_valid(wrong)) << wrong;
  // The same with keys that must be there, and others.
  const Json mixed{{"properties", properties(100)}, {"required", {"p10", "p90"}}};
  const CompiledGrammar of_mixed(schema_grammar(mixed, {}));
  grammar::ParserStates mixed_states(of_mixed);
  const auto fits = [&](const char* text) { return mixed_states.may_end(state_after(mixed_states, text)); };
  EXPECT_TRUE(fits(R"({"p10":null,"p90":null})"));
  EXPECT_TRUE(fits(R"({"p3":null,"p10":null,"p50":null,"p90":null,"p99":null,"x":1,"y":[]})"));
  EXPECT_FALSE(fits(R"({"p10":null})"));
  EXPECT_FALSE(fits(R"({"p90":null})"));
  EXPECT_FALSE(fits(R"({"x":1})"));
  EXPECT_FALSE(fits(R"({"p10":null,"p90":null,"p3":null})")) << "a known key is in its place alone";
}

// With the square of the number of values this would take an hour.
TEST(JsonSchema, ReadsLongLists) {
  Json values = Json::array();
  for (int i = 0; i < 200'000; ++i) values.push_back(i);
  const Json listed{{"enum", values}};
  EXPECT_EQ(schema_grammar(listed, {}).rules.back().body == nullptr, false);
  values.push_back(-1);
  const Json both{{"allOf", Json::array({listed, Json{{"enum", values}}})}};
  EXPECT_NE(message_of([&] { schema_grammar(both, {}); }).find("too long"), std::string::npos);
}

TEST(JsonSchema, WritesCasesWithinFixedText) {
  grammar::SchemaCases cases{.cases = {{"<a>", parse_json(R"({"type":"integer"})"), "</a>"},
                                       {"<b>", parse_json(R"({"items":{"$ref":"#"}})"), "</b>"}},
                             .begin = "[",
                             .separator = ";",
                             .end = "]",
                             .least = 1,
                             .most = 2};
  const grammar::Grammar made = grammar::schema_cases_grammar(cases, {});
  EXPECT_TRUE(matches(made, "[<a>1</a>]"));
  EXPECT_TRUE(matches(made, "[<b>[[]]</b>;<a>12</a>]"));
  cases.cases[1].schema = parse_json(R"_({"properties":{"x":{"pattern":"(?=x)"}}})_");
  cases.cases[1].name = "arguments of \"b\"";
  const auto refusal = [&] { return message_of([&] { CompiledGrammar{grammar::schema_cases_grammar(cases, {})}; }); };
  EXPECT_NE(refusal().find("arguments of \"b\": [schema] at \"#/properties/x\": pattern"), std::string::npos)
      << refusal();
  cases.cases[1].schema = parse_json(R"({"items":{"maxItems":1000000}})");
  EXPECT_NE(refusal().find("arguments of \"b\": [schema] at \"#/items\": maxItems"), std::string::npos) << refusal();
  for (const char* text : {"[]", "[<a>[]</a>]", "[<a>1</b>]", "[<a>1</a>;<a>1</a>;<a>1</a>]"})
    EXPECT_FALSE(matches(made, text)) << text;
}

}  // namespace weft::json_schema_test
