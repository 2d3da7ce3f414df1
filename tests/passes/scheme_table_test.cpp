// The ops' declarations of schemes are true, and include all that the patterns need.

#include "passes/scheme_table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/interpret.h"
#include "passes/quant_patterns.h"
#include "tests/test_context.h"

namespace weft::scheme_table_test {

std::int64_t groups_in(std::int64_t extent, std::int64_t group) { return group < 0 ? 1 : extent / group; }

// The sample with the attributes of the scheme; nothing if the op does not accept its tensors then.
std::optional<std::vector<Tensor>> computed(const Context& context, const SchemeRow& row, const Sample& sample) {
  Sample own = sample;
  for (const auto& [name, value] : row.attributes) {
    std::erase_if(own.attributes, [&](const auto& entry) { return entry.first == name; });
    own.attributes.emplace_back(name, value);
  }
  const SampleCall call = make_sample_call(*row.quantizer, own, DType::f32);
  try {
    infer_results(*row.quantizer, context.ops, metas_of(call.operands), call.attributes);
  } catch (const UserError&) {
    return std::nullopt;
  }
  Interpreter interpreter(context);
  std::vector<Tensor> all = {call.operands[0]};
  for (const Value& value :
       interpreter.evaluate(*row.quantizer, values_of(interpreter, call.operands), call.attributes, false))
    all.push_back(value.tensor());
  return all;
}

TEST(SchemeTable, SaysOfEachSchemeWhatItsOpGives) {
  const auto context = test_context();
  const SchemeTable schemes(context->ops);
  EXPECT_GE(schemes.rows().size(), 14u);
  for (const SchemeRow& row : schemes.rows()) {
    SCOPED_TRACE(row.quantizer->name + " " + row.key.text());
    int tried = 0;
    for (const Sample& sample : row.quantizer->samples) {
      const auto tensors = computed(*context, row, sample);
      if (!tensors) continue;
      const Meta& codes = (*tensors)[1].meta;
      ASSERT_EQ(codes.dtype, row.key.dtype);
      EXPECT_EQ(tensors->size() == 2, row.key.scale.is_static);
      if (row.key.scale.is_static) {
        ++tried;
        continue;
      }
      const Meta& scale = (*tensors)[2].meta;
      ASSERT_EQ(scale.dtype, row.key.scale.dtype);
      const Shape& x = (*tensors)[0].meta.shape;
      const std::int64_t columns = x.back().number(), rows = element_count(x).number() / columns;
      const GroupShape& group = row.key.scale.group;
      const std::int64_t count = groups_in(rows, group.rows) * groups_in(columns, group.columns);
      // Swizzled scales are padded to whole tiles, short last groups have one too.
      const std::int64_t given = element_count(scale.shape).number();
      EXPECT_GE(given, count);
      tried += given == count ? 1 : 0;
    }
    EXPECT_GT(tried, 0);
  }
}

TEST(SchemeTable, FindsEverySchemeThatIsJoined) {
  const auto context = test_context();
  const SchemeTable schemes(context->ops);
  for (const DType fp8 : {DType::f8e4m3, DType::f8e4m3fnuz})
    for (const QuantKey& key : joined_schemes(fp8)) {
      ASSERT_NE(schemes.find(key), nullptr) << key.text();
      EXPECT_NE(schemes.fused("silu_and_mul", *schemes.find(key)), nullptr) << key.text();
    }
  EXPECT_EQ(schemes.find({DType::f8e5m2, {}}), nullptr);
  EXPECT_EQ(schemes.fused("softmax", *schemes.find(int8_dynamic_token())), nullptr);
}

std::string refusal(const OpTable& ops) {
  std::vector<FusionPattern> patterns;
  PatternList list("act_quant", ops, DType::f8e4m3, patterns);
  try {
    add_quant_patterns(list, {"silu_and_mul"});
  } catch (const InternalError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(QuantPatterns, NameTheSchemeAndThePatternThatLackAnOp) {
  const auto context = test_context();
  EXPECT_EQ(refusal(context->ops), "accepted");
  OpTable without_fused, without_quantizer;
  for (const auto& [name, op] : context->ops.all()) {
    if (name != "silu_and_mul_scaled_fp4_quant") without_fused.add(op);
    if (name != "dynamic_per_token_scaled_int8_quant") without_quantizer.add(op);
  }
  const std::string fused = refusal(without_fused), quantizer = refusal(without_quantizer);
  EXPECT_NE(fused.find("silu_and_mul and scaled_fp4_quant in one"), std::string::npos) << fused;
  EXPECT_NE(fused.find("QuantKey(f4e2m1,scale(f8e4m3,dynamic,1x16),scale(f32,static,per_tensor),symmetric)"),
            std::string::npos)
      << fused;
  EXPECT_NE(quantizer.find("QuantKey(i8,scale(f32,dynamic,per_token),symmetric)"), std::string::npos) << quantizer;
  EXPECT_NE(quantizer.find("silu_and_mul"), std::string::npos) << quantizer;
}

}  // namespace weft::scheme_table_test
