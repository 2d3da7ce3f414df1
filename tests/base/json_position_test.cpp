#include "base/json_position.h"

#include <gtest/gtest.h>

namespace weft::json_position_test {

TEST(JsonPosition, IsTheFirstByteThatCannotBeThere) {
  EXPECT_EQ(json_error_position(R"({"a":1,})"), 8U);
  EXPECT_EQ(json_error_position(R"({'a':1})"), 2U);
  EXPECT_EQ(json_error_position(R"({"a":1)"), 6U) << "the end, after which more must follow";
  EXPECT_EQ(json_error_position("[1] x"), 5U);
  EXPECT_EQ(json_error_position(R"({"a":[1,"b",null,true,1.5,{}]})"), std::nullopt);
  EXPECT_EQ(json_error_position(""), std::nullopt);
}

}  // namespace weft::json_position_test
