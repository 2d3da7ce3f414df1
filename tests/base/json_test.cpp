#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/thrown_message.h"

namespace weft::json_test {

constexpr JsonLimits kLimits = {.most_bytes = 64, .deepest = 3, .keys_once = true};

std::string refusal_of(const std::string& text, const JsonLimits& limits = kLimits) {
  return message_of([&] { parse_json(text, "here", limits); });
}

TEST(Json, KeepsTheOrderOfMembers) {
  EXPECT_EQ(json_text(parse_json(R"({"b": 1, "a": [2, null]})")), R"({"b":1,"a":[2,null]})");
  EXPECT_EQ(json_text(Json{{"b", 1}, {"a", 2}}, 1), "{\n \"b\": 1,\n \"a\": 2\n}");
}

TEST(Json, WritesTextThatIsNotUtf8) {
  EXPECT_EQ(json_text(Json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(json_ascii(Json("\xc3\xa4\xff")), "\"\\u00e4\\ufffd\"");
}

TEST(Json, IsDiscardedWhereItIsNone) { EXPECT_TRUE(parse_json("{").is_discarded()); }

TEST(Json, RefusesWhatExceedsItsLimits) {
  EXPECT_EQ(refusal_of(R"({"a": [[1]], "b": {"a": 2}})"), "");
  EXPECT_EQ(refusal_of(std::string(65, ' ')), "[here] must have at most 64 bytes, but has 65");
  EXPECT_EQ(refusal_of("[[[[1]]]]"), "[here] must be nested at most 3 deep, but is deeper");
  EXPECT_EQ(refusal_of(R"({"a": 1, "b": {"a": 2}, "a": 3})"), "[here] has the key \"a\" twice");
  EXPECT_EQ(refusal_of(R"({"a": 1, "a": 3})", {.most_bytes = 64, .deepest = 3}), "");
}

TEST(Json, SaysWhereItIsNone) {
  EXPECT_TRUE(refusal_of("{\"a\" 1}").starts_with("[here] wanted JSON, but: \"parse error at line 1, column 6"))
      << refusal_of("{\"a\" 1}");
  EXPECT_TRUE(refusal_of("").starts_with("[here] wanted JSON, but is empty"));
}

}  // namespace weft::json_test
