#include <gtest/gtest.h>

#include "grammar/json_schema.h"
#include "tests/grammar/grammar_texts.h"
#include "tests/grammar/small_validator.h"

namespace weft::schema_bounds_test {

using grammar::schema_grammar;

struct NumberRow {
  const char* schema;
  std::vector<const char*> valid, invalid;  // numbers
};

TEST(SchemaBounds, AreEnforcedWithManyDigits) {
  const NumberRow rows[] = {
      {R"({"type":"integer","minimum":1000000000000000000})",
       {"1000000000000000000", "9223372036854775807"},
       {"999999999999999999", "0", "-1000000000000000000"}},
      {R"({"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807})",
       {"-9223372036854775808", "9223372036854775807", "0", "1000000000000000000"},
       {"-9223372036854775809", "9223372036854775808", "10000000000000000000"}},
      {R"({"type":"integer","minimum":9223372036854775807})",
       {"9223372036854775807"},
       {"9223372036854775806", "922337203685477580"}},
      {R"({"type":"integer","minimum":-9223372036854775808,"maximum":-9223372036854775807})",
       {"-9223372036854775808", "-9223372036854775807"},
       {"-9223372036854775806", "-9223372036854775809", "9223372036854775808"}},
      {R"({"type":"integer","maximum":18446744073709551615})",
       {"18446744073709551615", "-999999999999999999"},
       {"18446744073709551616"}},
      {R"({"type":"integer","exclusiveMinimum":999999999999999999})", {"1000000000000000000"}, {"999999999999999999"}},
      {R"({"type":"integer","minimum":1000000000000000000,"maximum":1000000000000000010,"multipleOf":7})",
       {"1000000000000000006"},
       {"1000000000000000001"}},
      {R"({"allOf":[{"type":"integer","maximum":18446744073709551615},{"maximum":5,"minimum":1}]})", {"5"}, {"6"}},
      {R"({"type":"number","minimum":1e15})", {"1000000000000000", "1000000000000000.5", "1e15"}, {"999999999999999"}},
      {R"({"type":"number","minimum":1e20})", {"100000000000000000000"}, {"99999999999999999999"}},
      {R"({"type":"number","minimum":0.71234567890123456,"maximum":0.71234567890123467})",
       {"0.7123456789012346", "0.71234567890123460", "0.71234567890123465"},
       {"0.7123456789012344", "0.71234567890123471"}},
      {R"({"type":"number","minimum":1e-30,"maximum":2e-30})",
       {"0.000000000000000000000000000001"},
       {"0.0000000000000000000000000000009", "0"}},
      {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})",
       {"0.12345678901234567", "0.00012345678901234567", "0.9999999999999999", "0.0000000000000001"},
       {"0.99999999999999999", "0", "1", "0.0"}},
  };
  std::mt19937 random(13);
  for (const NumberRow& row : rows) {
    const Json schema = parse_json(row.schema);
    const grammar::Grammar made = schema_grammar(schema, {});
    // Numbers within bounds have no exponent.
    for (const char* text : row.valid)
      EXPECT_EQ(matches(made, text), std::string(text) != "1e15") << row.schema << " " << text;
    for (const char* text : row.invalid) EXPECT_FALSE(matches(made, text)) << row.schema << " " << text;
    TextWriter writer(made, small_vocabulary());
    for (int i = 0; i < 20; ++i) {
      const std::string text = writer.write(random);
      EXPECT_TRUE(is_valid(parse_json(text), schema)) << row.schema << " " << text;
    }
  }
}

TEST(SchemaBounds, MayBeLongLengthsBesidePatterns) {
  const std::string label(63, 'a');
  const std::string host = label + "." + label + "." + label + ".";
  struct Row {
    const char* schema;
    std::string longest, longer;
  };
  const Row rows[] = {
      {R"({"format":"email","maxLength":254})", "a@" + host + std::string(60, 'b'), "c"},
      {R"({"format":"email","maxLength":320})", std::string(64, 'x') + "@" + host + label, "x"},
      {R"({"format":"hostname","maxLength":253})", host + std::string(61, 'a'), "a"},
      {R"({"format":"hostname"})", host + std::string(61, 'a'), "a"},
      {R"({"format":"uri","maxLength":2083,"minLength":1})", "http://a/" + std::string(2074, 'b'), "b"},
      {R"({"pattern":"[A-Z]","maxLength":4000})", std::string(3999, 'a') + "Z", "a"},
      {R"({"pattern":"^[^@]+@[^@]+$","maxLength":5000})", std::string(4000, 'a') + "@" + std::string(999, 'a'), "a"},
      {R"({"pattern":"^https://","maxLength":3000})", "https://" + std::string(2992, '/'), "/"},
      {R"({"pattern":"^\\S.*\\S$","minLength":3000,"maxLength":3000})", std::string(3000, 'x'), "x"},
      {R"({"maxLength":1000000})", std::string(1'000'000, 'x'), "x"},
  };
  for (const auto& [schema, longest, longer] : rows) {
    const grammar::Grammar made = schema_grammar(parse_json(schema), {});
    EXPECT_TRUE(matches(made, json_text(longest))) << schema;
    EXPECT_FALSE(matches(made, json_text(longest + longer))) << schema;
  }
}

TEST(SchemaBounds, OfAHostnameHoldForListedValues) {
  const std::string label(63, 'a'), host = label + "." + label + "." + label + ".";
  const std::string fits = host + std::string(61, 'a'), too_long = host + std::string(62, 'a');
  const grammar::Grammar made = schema_grammar({{"format", "hostname"}, {"enum", {fits, too_long}}}, {});
  EXPECT_TRUE(matches(made, json_text(fits)));
  EXPECT_FALSE(matches(made, json_text(too_long)));
}

// Many readers take -0 for a real number.
TEST(SchemaBounds, LeaveNoMinusBeforeZeroInIntegers) {
  for (const char* schema : {R"({"type":"integer"})", R"({"type":"integer","minimum":0})",
                             R"({"type":"integer","minimum":-5,"maximum":5})", R"({"type":"integer","multipleOf":3})",
                             R"({"type":"integer","maximum":0})", R"({"type":"integer","exclusiveMinimum":-1})"}) {
    const grammar::Grammar made = schema_grammar(parse_json(schema), {});
    EXPECT_FALSE(matches(made, "-0")) << schema;
    EXPECT_TRUE(matches(made, "0")) << schema;
    std::mt19937 random(5);
    TextWriter writer(made, small_vocabulary());
    for (int i = 0; i < 20; ++i) EXPECT_NE(writer.write(random), "") << schema;
  }
  EXPECT_TRUE(matches(schema_grammar(parse_json(R"({"type":"integer","minimum":-5})"), {}), "-5"));
}

}  // namespace weft::schema_bounds_test
