// Calls that ops with the epilogue per_token_group_quant_int8 refuse, with their own names.

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/op.h"
#include "tests/thrown_message.h"

namespace weft::gated_group_quant_int8_test {

std::string refusal(const char* name, const std::vector<std::optional<Meta>>& operands, const NamedAttributes& given) {
  static const OpTable ops = make_op_table();
  const Op& op = ops.at(name);
  return message_of([&] { infer_results(op, ops, operands, complete_attributes(op.schema, given)); });
}

TEST(GatedGroupQuantInt8, RefusesRowsThatAreNotTwoHalvesOfWholeGroups) {
  for (const char* gate : {"silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"}) {
    const std::string op = std::string(gate) + "_per_token_group_quant_int8";
    const auto of = [&](Shape shape, std::int64_t group, const char* rounding) {
      return refusal(op.c_str(), {Meta::tensor(DType::bf16, std::move(shape))},
                     {{"group_size", group}, {"rounding", EnumWord{rounding}}});
    };
    EXPECT_EQ(of({Dim::symbol("s0"), 192}, 32, "nearest"), "");
    EXPECT_EQ(of({3, 96}, 32, "nearest"), "[" + op + "] x must have rows of whole groups of 32, but is bf16[3, 96]");
    EXPECT_EQ(of({3, 192}, 0, "nearest"), "[" + op + "] x must have rows of whole groups of 0, but is bf16[3, 192]");
    EXPECT_EQ(of({3, 65}, 32, "nearest"), "[" + op + "] x must have an even number of columns, but is bf16[3, 65]");
    EXPECT_EQ(of({3, 64}, 32, "up"), "[" + op + "] rounding must be nearest or toward_zero, but is up");
  }
}

TEST(GatedGroupQuantInt8, NormsRefuseGroupsThatDoNotDivideTheirRows) {
  const Meta x = Meta::tensor(DType::f32, {2, 576});
  EXPECT_EQ(refusal("rms_norm_per_token_group_quant_int8", {x, std::nullopt}, {{"epsilon", 1e-6}, {"group_size", 128}}),
            "[rms_norm_per_token_group_quant_int8] x must have rows of whole groups of 128, but is f32[2, 576]");
  EXPECT_EQ(
      refusal("fused_add_rms_norm_per_token_group_quant_int8", {x, x, std::nullopt},
              {{"epsilon", 1e-6}, {"group_size", 128}}),
      "[fused_add_rms_norm_per_token_group_quant_int8] x must have rows of whole groups of 128, but is f32[2, 576]");
  EXPECT_EQ(refusal("fused_add_rms_norm_per_token_group_quant_int8",
                    {x, Meta::tensor(DType::bf16, {2, 576}), std::nullopt}, {{"epsilon", 1e-6}, {"group_size", 64}}),
            "[fused_add_rms_norm] x_residual must match x: f32[2, 576], but is bf16[2, 576]");
}

}  // namespace weft::gated_group_quant_int8_test
