#include "tensor/attribute_parser.h"

#include <bit>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/text_cursor.h"
#include "tests/tensor/random_source.h"

namespace weft::attribute_parser_test {

std::string error_of(const std::string& text) {
  try {
    return "accepted as " + parse_attribute(text).text();
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(AttributeParser, ReadsEveryKind) {
  EXPECT_EQ(parse_attribute("none"), Attribute());
  EXPECT_EQ(parse_attribute("true"), Attribute(true));
  EXPECT_EQ(parse_attribute("false"), Attribute(false));
  EXPECT_EQ(parse_attribute("-1"), Attribute(-1));
  EXPECT_EQ(parse_attribute("1e-05"), Attribute(1e-5));
  EXPECT_EQ(parse_attribute("-2.5E3"), Attribute(-2500.0));
  EXPECT_EQ(parse_attribute("inf"), Attribute(INFINITY));
  EXPECT_EQ(parse_attribute("-inf"), Attribute(-INFINITY));
  EXPECT_EQ(parse_attribute("nan"), Attribute(NAN));
  EXPECT_EQ(parse_attribute("f8e4m3"), Attribute(DType::f8e4m3));
  EXPECT_EQ(parse_attribute("column_major"), Attribute(EnumWord{"column_major"}));
  EXPECT_EQ(parse_attribute("s0"), Attribute(Dim::symbol("s0")));
  EXPECT_EQ(parse_attribute("2*s0 + 16"), Attribute(Dim::symbol("s0") * 2 + 16));
  EXPECT_EQ(parse_attribute("tokens * 2"), Attribute(Dim::symbol("tokens") * 2));
  EXPECT_EQ(parse_attribute("align(tokens, 4)"), Attribute(align(Dim::symbol("tokens"), 4)));
  EXPECT_EQ(parse_attribute("[s0, 9, [ ]]"), Attribute(AttributeList{Dim::symbol("s0"), 9, AttributeList{}}));
  EXPECT_EQ(parse_attribute("\"a\""), Attribute("a"));
}

TEST(AttributeParser, TellsSymbolsFromWordsByTheGivenSet) {
  const std::set<std::string> symbols = {"tokens"};
  std::size_t position = 0;
  EXPECT_EQ(parse_attribute("tokens", position, &symbols), Attribute(Dim::symbol("tokens")));
  position = 0;
  EXPECT_EQ(parse_attribute("s0", position, &symbols), Attribute(EnumWord{"s0"}));
}

TEST(AttributeParser, ReadsEscapesInStrings) {
  EXPECT_EQ(parse_attribute(R"("\"\\\n\u{41}\u{e9}\u{20ac}\u{1f600}")").string(), "\"\\\nA\u00e9\u20ac\U0001f600");
  EXPECT_EQ(parse_attribute(R"("# no comment, [not] a list")").string(), "# no comment, [not] a list");
  EXPECT_EQ(parse_attribute(R"("\u{0}")").string(), std::string(1, '\0'));
}

TEST(AttributeParser, StopsRightBehindTheValue) {
  const std::string text = "epsilon=1e-05, layout=column_major)";
  std::size_t position = 8;
  EXPECT_EQ(parse_attribute(text, position), Attribute(1e-5));
  EXPECT_EQ(text.substr(position), ", layout=column_major)");
  position = 22;
  parse_attribute(text, position);
  EXPECT_EQ(text.substr(position), ")");
}

TEST(AttributeParser, NamesColumnWantedAndFound) {
  EXPECT_EQ(error_of(""), "line 1, column 1: expected a value, found the end of the text");
  EXPECT_EQ(error_of("%x"), "line 1, column 1: expected a value, found '%'");
  EXPECT_EQ(error_of("\"abc"), "line 1, column 5: expected '\"' at the end of the string, found the end of the text");
  EXPECT_EQ(error_of("[1, 2"), "line 1, column 6: expected ']', found the end of the text");
  EXPECT_EQ(error_of("1e999"), "line 1, column 1: expected a float that fits 64 bits, found '1e999'");
  EXPECT_EQ(error_of("1 2"), "line 1, column 3: expected the end of the value, found '2'");
  for (const char* text : {R"("\x")", R"("\u{}")", R"("\u{110000}")", R"("\u{d800}")", R"("\u{41")", R"("\u41")"})
    EXPECT_NE(error_of(text).find("expected one of"), std::string::npos) << text;
}

TEST(AttributeParser, RefusesDeepListsWithoutRecursingIntoThem) {
  EXPECT_THROW(parse_attribute(std::string(100000, '[')), ParseError);
  EXPECT_NO_THROW(parse_attribute(std::string(30, '[') + std::string(30, ']')));
}

TEST(AttributeParser, ReadsBackEveryDouble) {
  RandomSource random(2);
  for (int i = 0; i < 20000; ++i) {
    const Attribute value(std::bit_cast<double>(random.bits()));
    ASSERT_EQ(parse_attribute(value.text()), value) << value.text();
  }
}

TEST(AttributeParser, ReadsBackEveryString) {
  RandomSource random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string value;
    for (std::int64_t length = random.integer(0, 20); length > 0; --length)
      value += static_cast<char>(random.integer(0, 255));
    ASSERT_EQ(parse_attribute(Attribute(value).text()), Attribute(value)) << Attribute(value).text();
  }
}

}  // namespace weft::attribute_parser_test
