// What ops that end with a quantization refuse, each with its own name.

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/op.h"
#include "tests/thrown_message.h"

namespace weft::fused_quant_test {

std::string refusal(const std::string& name, const std::vector<std::optional<Meta>>& operands,
                    const NamedAttributes& given) {
  static const OpTable ops = make_op_table();
  const Op& op = ops.at(name);
  return message_of([&] { infer_results(op, ops, operands, complete_attributes(op.schema, given)); });
}

void expect_refusal(const std::string& message, const std::string& op, const char* words) {
  EXPECT_TRUE(message.starts_with("[" + op + "]") && message.find(words) != std::string::npos)
      << op << " gives '" << message << "' instead of words like '" << words << "'";
}

TEST(FusedQuant, GatesRefuseRowsThatAreNotTwoHalvesOfWholeGroups) {
  for (const std::string gate : {"silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"})
    for (const std::string quantizer : {"per_token_group_quant_int8", "per_token_group_quant_fp8"}) {
      const std::string op = gate + "_" + quantizer;
      const auto of = [&](Shape shape, const NamedAttributes& given) {
        std::vector<std::optional<Meta>> operands = {Meta::tensor(DType::bf16, std::move(shape))};
        if (quantizer.ends_with("fp8")) operands.emplace_back();
        return refusal(op, operands, given);
      };
      EXPECT_EQ(of({Dim::symbol("s0"), 192}, {{"group_size", 32}}), "");
      expect_refusal(of({3, 96}, {{"group_size", 32}}), op, "whole groups of 32, but are [3, 48]");
      expect_refusal(of({3, 192}, {{"group_size", 0}}), op, "group_size must be positive");
      expect_refusal(of({3, 65}, {{"group_size", 32}}), op, "even number of columns");
      expect_refusal(of({3, 64}, {{"group_size", 32}, {"intermediate", EnumWord{"f16"}}}), op,
                     "intermediate must be input_dtype or f32");
      expect_refusal(of({3, 64}, {{"group_size", 32}, {"tma_aligned_scales", true}}), op,
                     "column_major_scales must be true");
      expect_refusal(of({64}, {{"group_size", 32}, {"column_major_scales", true}}), op, "wants a matrix");
      if (quantizer.ends_with("fp8")) continue;
      expect_refusal(of({3, 64}, {{"group_size", 32}, {"rounding", EnumWord{"up"}}}), op,
                     "rounding must be nearest or toward_zero");
    }
}

TEST(FusedQuant, NormsRefuseGroupsThatDoNotDivideTheirRows) {
  const Meta x = Meta::tensor(DType::f32, {2, 576});
  const NamedAttributes given = {{"epsilon", 1e-6}, {"group_size", 128}};
  for (const std::string op :
       {"rms_norm_per_token_group_quant_int8", "fused_add_rms_norm_per_token_group_quant_int8"}) {
    std::vector<std::optional<Meta>> operands = {x, std::nullopt};
    if (op.starts_with("fused_add")) operands.insert(operands.begin(), x);
    expect_refusal(refusal(op, operands, given), op, "whole groups of 128, but are [2, 576]");
  }
  const Meta other = Meta::tensor(DType::bf16, {2, 576});
  expect_refusal(refusal("fused_add_rms_norm_per_token_group_quant_int8", {x, other, std::nullopt},
                         {{"epsilon", 1e-6}, {"group_size", 64}}),
                 "fused_add_rms_norm", "x_residual must match x");
}

}  // namespace weft::fused_quant_test
