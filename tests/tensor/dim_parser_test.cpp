#include "tensor/dim_parser.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/text_cursor.h"

namespace weft::dim_parser_test {

std::string error_of(const std::string& text) {
  try {
    return "accepted as " + parse_dim(text).text();
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(DimParser, ReadsExpressions) {
  EXPECT_EQ(parse_dim("576").text(), "576");
  EXPECT_EQ(parse_dim("-3").text(), "-3");
  EXPECT_EQ(parse_dim("16 + 2 * s0").text(), "2*s0 + 16");
  EXPECT_EQ(parse_dim("2*(s0+1)-s0").text(), "s0 + 2");
  EXPECT_EQ(parse_dim("align( s0 , 4 )").text(), "align(s0, 4)");
  EXPECT_EQ(parse_dim("ceildiv(s0, 2*64)").text(), "ceildiv(s0, 128)");
  EXPECT_EQ(parse_dim("-(s0 - 4)").text(), "-1*s0 + 4");
  EXPECT_EQ(parse_dim("s0 - -3").text(), "s0 + 3");
  EXPECT_EQ(parse_dim("s0 + -9223372036854775808").text(), "s0 + -9223372036854775808");
  EXPECT_EQ(parse_dim("?n * 2").text(), "2*?n");
  EXPECT_EQ(parse_dim("s0\n  + 1").text(), "s0 + 1");
}

TEST(DimParser, StopsRightBehindTheDim) {
  const std::string text = "[s0 + 1 , 4] -> x";
  std::size_t position = 1;
  EXPECT_EQ(parse_dim(text, position).text(), "s0 + 1");
  EXPECT_EQ(position, 7u);
  position = 9;
  EXPECT_EQ(parse_dim(text, position), Dim(4));
  EXPECT_EQ(position, 11u);
  position = 0;
  EXPECT_EQ(parse_dim("s0 -> 4", position).text(), "s0");
  EXPECT_EQ(position, 2u);
}

TEST(DimParser, NamesColumnWantedAndFound) {
  EXPECT_EQ(error_of("s0 + "), "line 1, column 6: expected a dimension, found the end of the text");
  EXPECT_EQ(error_of("s0 s1"), "line 1, column 4: expected the end of the dimension, found 's1'");
  EXPECT_EQ(error_of("(s0"), "line 1, column 4: expected ')', found the end of the text");
  EXPECT_EQ(error_of("align(s0, s1)"), "line 1, column 11: expected a number of at least 1, found 's1'");
  EXPECT_EQ(error_of("align(s0, 0)"), "line 1, column 11: expected a number of at least 1, found '0'");
  EXPECT_EQ(error_of("99999999999999999999"),
            "line 1, column 1: expected a number of 64 bits, found '99999999999999999999'");
  EXPECT_EQ(error_of("s0 +\n f32"), "line 2, column 2: expected a dimension, found 'f32'");
  EXPECT_EQ(error_of("\xff"), "line 1, column 1: expected a dimension, found byte 0xff");
}

TEST(DimParser, RefusesOverflowAsAUserError) {
  EXPECT_THROW(parse_dim("9223372036854775807 + 1"), UserError);
  EXPECT_THROW(parse_dim("4611686018427387904 * 2 * s0"), UserError);
}

TEST(DimParser, RefusesDeepAndLongTextWithoutRecursingIntoIt) {
  EXPECT_THROW(parse_dim(std::string(100000, '(')), ParseError);
  EXPECT_THROW(parse_dim(std::string(100000, '-') + "1"), ParseError);
  EXPECT_NO_THROW(parse_dim(std::string(30, '(') + "s0" + std::string(30, ')')));
  std::string sum = "s0";
  for (int i = 0; i < 100000; ++i) sum += " + s0";
  EXPECT_THROW(parse_dim(sum), ParseError);
  std::string nested = "s0";
  for (int i = 0; i < 31; ++i) nested = "(floordiv(" + nested + ",3)+1)*(s0+1)";
  EXPECT_THROW(parse_dim(nested), UserError);
}

TEST(DimParser, ReadsShapesUpToACount) {
  std::size_t position = 0;
  EXPECT_EQ(parse_shape("[s0, 9, 64]", position, '[', ']', 6), (Shape{Dim::symbol("s0"), 9, 64}));
  EXPECT_EQ(position, 11u);
  position = 0;
  EXPECT_TRUE(parse_shape("{ }", position, '{', '}', 6).empty());
  position = 0;
  EXPECT_THROW(parse_shape("[1, 2, 3]", position, '[', ']', 2), ParseError);
  position = 0;
  EXPECT_THROW(parse_shape("[1, ]", position, '[', ']', 6), ParseError);
  position = 0;
  EXPECT_THROW(parse_shape("[1 2]", position, '[', ']', 6), ParseError);
}

}  // namespace weft::dim_parser_test
