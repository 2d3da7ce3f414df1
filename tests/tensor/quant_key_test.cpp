// Names of schemes.

#include "tensor/quant_key.h"

#include <gtest/gtest.h>

namespace weft::quant_key_test {

TEST(QuantKey, SpellsWhatItNames) {
  EXPECT_EQ(fp8_static_tensor(DType::f8e4m3fnuz).text(), "QuantKey(f8e4m3fnuz,scale(f32,static,per_tensor),symmetric)");
  EXPECT_EQ(fp8_dynamic_group(DType::f8e4m3, 128).text(), "QuantKey(f8e4m3,scale(f32,dynamic,1x128),symmetric)");
  EXPECT_EQ(nvfp4_dynamic().text(),
            "QuantKey(f4e2m1,scale(f8e4m3,dynamic,1x16),scale(f32,static,per_tensor),symmetric)");
  const QuantKey asymmetric{DType::i8, {.group = GroupShape::per_token()}, {}, false};
  EXPECT_EQ(asymmetric.text(), "QuantKey(i8,scale(f32,dynamic,per_token),asymmetric)");
  EXPECT_EQ(GroupShape::per_channel().text(), "per_channel");
}

TEST(QuantKey, ComparesByAllOfIt) {
  EXPECT_EQ(int8_dynamic_group(32), int8_dynamic_group(32));
  EXPECT_NE(int8_dynamic_group(32), int8_dynamic_group(64));
  EXPECT_NE(fp8_dynamic_tensor(DType::f8e4m3), fp8_static_tensor(DType::f8e4m3));
  EXPECT_NE(mxfp8_dynamic(), fp8_dynamic_group(DType::f8e4m3, 32));
}

}  // namespace weft::quant_key_test
