// Layouts of the scales, the UE8M0 form, what bounds hold, and what is refused.

#include "ops/per_token_group_quant_fp8.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/eager.h"
#include "ir/parse.h"
#include "ops/dynamic_scaled_fp8_quant.h"
#include "ops/linear_fp8_block.h"
#include "ops/static_scaled_fp8_quant.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::per_token_group_quant_fp8_test {

class GroupQuantFp8 : public testing::Test {
 protected:
  GroupQuantFp8() : context_(test_context()), eager_(*context_, {1, 64}) {}

  Value filled(DType dtype, Shape shape, float value) {
    Tensor tensor = Tensor::empty(Meta::tensor(dtype, std::move(shape)));
    if (dtype == DType::f32)
      for (std::int64_t i = 0; i < tensor.meta.bytes().number() / 4; ++i) tensor.as<float>()[i] = value;
    return Value::concrete(eager_, tensor);
  }
  Value bound(float value) { return filled(DType::f32, {1}, value); }

  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::shared_ptr<Context> context_;
  EagerEvaluator eager_;
};

TEST_F(GroupQuantFp8, LaysItsScalesOutAsAsked) {
  const Value x = filled(DType::f32, {5, 256}, 1), cube = filled(DType::f32, {2, 5, 256}, 1);
  const auto layout = [&](const Value& of, bool column_major, bool tma_aligned) {
    return per_token_group_quant_fp8(of, {}, 64, 1e-10, false, column_major, tma_aligned).second.meta().text();
  };
  EXPECT_EQ(layout(x, false, false), "f32[5, 4]");
  EXPECT_EQ(layout(x, true, false), "f32[5, 4]{1, 5}");
  EXPECT_EQ(layout(x, true, true), "f32[5, 4]{1, 8}");
  EXPECT_EQ(layout(cube, true, false), "f32[2, 5, 4]{20, 1, 5}");
  EXPECT_EQ(layout(cube, true, true), "f32[2, 5, 4]{32, 1, 8}");
}

TEST_F(GroupQuantFp8, RoundsPowersOfTwoUpByBitsAlone) {
  // 448 * 2^-3 gives the scale 2^-3 as it is; the next number above gives 2^-2, which exp2(ceil(log2)) may miss.
  const float exact = 56, above = std::nextafter(exact, 100.0f);
  for (const auto& [largest, scale] : {std::pair(exact, 0.125f), {above, 0.25f}}) {
    const auto [codes, scales] = per_token_group_quant_fp8(filled(DType::f32, {1, 64}, largest), {}, 64, 1e-10, true);
    EXPECT_EQ(scales.tensor().as<float>()[0], scale);
  }
}

TEST_F(GroupQuantFp8, KeepsNanInItsGroupAlone) {
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {1, 128}));
  for (int i = 0; i < 128; ++i) x.as<float>()[i] = 1;
  x.as<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  const auto [codes, scales] = per_token_group_quant_fp8(Value::concrete(eager_, x), {}, 64);
  EXPECT_TRUE(std::isnan(scales.tensor().as<float>()[0]));
  EXPECT_EQ(scales.tensor().as<float>()[1], 1.0f / 448);
  EXPECT_EQ(elements_of(codes.tensor())[64], 448);
}

// Spec K.5: of a group whose largest magnitude is 100.
TEST_F(GroupQuantFp8, HoldsTheMagnitudeOrTheScaleToItsBound) {
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {1, 64}));
  for (int i = 0; i < 64; ++i) x.as<float>()[i] = i == 0 ? 100.0f : 1.0f;
  struct Case {
    const char* of;
    float bound, scale;
    double first_code, other_code;
  };
  const Case cases[] = {{"magnitude", 44.8f, 44.8f / 448, 448, 10},
                        {"scale", 44.8f, 100.0f / 448, 448, 4.5},
                        {"scale", 0.1f, 0.1f, 448, 10},
                        {"magnitude", 100, 100.0f / 448, 448, 4.5},
                        {"scale", kInfinity, 100.0f / 448, 448, 4.5}};
  for (const Case& one : cases) {
    const auto [codes, scale] = per_token_group_quant_fp8(Value::concrete(eager_, x), bound(one.bound), 64, 0.0, false,
                                                          false, false, 0.0, 0.0, "division", one.of);
    EXPECT_EQ(scale.tensor().as<float>()[0], one.scale) << one.of << " " << one.bound;
    EXPECT_EQ(elements_of(codes.tensor())[0], one.first_code) << one.of << " " << one.bound;
    EXPECT_EQ(elements_of(codes.tensor())[1], one.other_code) << one.of << " " << one.bound;
  }
}

// eps comes before the bound, what raises scales behind it.
TEST_F(GroupQuantFp8, RaisesWhatIsHeld) {
  const Value zeros = filled(DType::f32, {1, 64}, 0), hundreds = filled(DType::f32, {1, 64}, 100);
  const auto scale = [&](const Value& x, const char* of, float at_most, double eps, bool power, double least) {
    return per_token_group_quant_fp8(x, bound(at_most), 64, eps, power, false, false, least, 0.0, "division", of)
        .second.tensor()
        .as<float>()[0];
  };
  EXPECT_EQ(scale(zeros, "magnitude", 44.8f, 100, false, 0), 44.8f / 448);
  EXPECT_EQ(scale(zeros, "scale", 0.1f, 100, false, 0), 0.1f);
  EXPECT_EQ(scale(hundreds, "magnitude", 44.8f, 0, true, 0), 0.125f);
  EXPECT_EQ(scale(hundreds, "scale", 0.1f, 0, true, 0), 0.125f);
  EXPECT_EQ(scale(hundreds, "magnitude", 44.8f, 0, false, 0.5), 0.5f);
  EXPECT_EQ(scale(hundreds, "scale", -1, 0, false, 0.5), 0.5f);
}

TEST_F(GroupQuantFp8, HoldsAnInfiniteGroupAndKeepsNan) {
  for (const char* of : {"magnitude", "scale"}) {
    const auto scale = [&](float value, float at_most) {
      return per_token_group_quant_fp8(filled(DType::f32, {1, 64}, value), bound(at_most), 64, 0.0, false, false, false,
                                       0.0, 0.0, "division", of)
          .second.tensor()
          .as<float>()[0];
    };
    EXPECT_EQ(scale(kInfinity, 44.8f), of == std::string("scale") ? 44.8f : 44.8f / 448);
    EXPECT_TRUE(std::isnan(scale(kNan, 44.8f)));
    EXPECT_TRUE(std::isnan(scale(1, kNan)));
  }
}

TEST_F(GroupQuantFp8, RefusesABoundThatIsNotOneFloat) {
  const Value x = filled(DType::f32, {3, 64}, 1);
  EXPECT_EQ(plain_message_of([&] { per_token_group_quant_fp8(x, filled(DType::f32, {2}, 1), 64); }),
            "[per_token_group_quant_fp8] scale_ub must be one f32, but is f32[2]");
  EXPECT_EQ(plain_message_of([&] {
              call("silu_and_mul_per_token_group_quant_fp8", {x, filled(DType::bf16, {1}, 1)}, {{"group_size", 32}});
            }),
            "[silu_and_mul_per_token_group_quant_fp8] scale_ub must be one f32, but is bf16[1]");
  EXPECT_EQ(plain_message_of([&] {
              call("rms_norm_per_token_group_quant_fp8", {x, {}, bound(1)},
                   {{"epsilon", 1e-5}, {"group_size", 64}, {"scale_ub_of", EnumWord{"rows"}}});
            }),
            "[rms_norm_per_token_group_quant_fp8] scale_ub_of must be magnitude or scale, but is rows");
  // Codes of int8 have no bound.
  EXPECT_EQ(plain_message_of([&] {
              parse_graph(
                  "graph g(%x: bf16[4, 128], %u: f32[1]) stage=pure {\n"
                  "  %q, %s = silu_and_mul_per_token_group_quant_int8(%x, %u, group_size=32)\n  return %q, %s\n}\n",
                  context_->ops);
            }),
            "text:2:74: [silu_and_mul_per_token_group_quant_int8] takes 1 tensors, but 2 are given");
}

TEST_F(GroupQuantFp8, RefusesGroupsThatDoNotFillARowByName) {
  const Value x = filled(DType::f32, {3, 576}, 1);
  EXPECT_EQ(plain_message_of([&] { per_token_group_quant_fp8(x, {}, 128); }),
            "[per_token_group_quant_fp8] rows must be whole groups of 128, but are [3, 576]");
  EXPECT_EQ(plain_message_of([&] { per_token_group_quant_fp8(x, {}, 64, 1e-10, false, false, true); }),
            "[per_token_group_quant_fp8] tma_aligned_scales are column-major: column_major_scales must be true, but is "
            "false");
}

TEST_F(GroupQuantFp8, RefusesOtherEightBitFloats) {
  const Value x = filled(DType::f32, {3, 64}, 1);
  EXPECT_EQ(plain_message_of([&] { dynamic_scaled_fp8_quant(x, 0.0, DType::f8e5m2); }),
            "[dynamic_scaled_fp8_quant] dtype must be f8e4m3 or f8e4m3fnuz, but is f8e5m2");
  const Value codes = filled(DType::f8e5m2, {3, 64}, 0), scale = filled(DType::f32, {3, 1}, 1);
  EXPECT_EQ(
      plain_message_of([&] {
        linear_fp8_block(codes, scale, filled(DType::f8e5m2, {5, 64}, 0), filled(DType::f32, {1, 1}, 1), {}, {64, 64});
      }),
      "[linear_fp8_block] x must be f8e4m3 or f8e4m3fnuz, but is f8e5m2");
}

TEST_F(GroupQuantFp8, NamesTheScaleThatDoesNotFitItsBlocks) {
  const Value x = filled(DType::f8e4m3, {3, 576}, 0), weight = filled(DType::f8e4m3, {96, 576}, 0);
  const Value scale = filled(DType::f32, {3, 9}, 1);
  EXPECT_EQ(plain_message_of([&] {
              linear_fp8_block(x, scale, weight, filled(DType::f32, {1, 9}, 1), {}, {64, 64});
            }),
            "[linear_fp8_block] weight_scale must be f32[2, 9], but is f32[1, 9]");
  const Value values = filled(DType::f32, {4, 64}, 1);
  EXPECT_EQ(plain_message_of([&] { static_scaled_fp8_quant(values, filled(DType::f32, {4}, 1)); }),
            "[static_scaled_fp8_quant] a scale f32[4] needs a group_shape");
}

}  // namespace weft::per_token_group_quant_fp8_test
