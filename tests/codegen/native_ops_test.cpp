// Every op as its meaning with code generated for it: the bits of its meaning run primitive by primitive.

#include <cmath>
#include <cstring>
#include <random>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "codegen/compile_rows.h"
#include "compiler/pipeline.h"
#include "ir/parse.h"
#include "runtime/replay.h"
#include "tensor/convert.h"
#include "tests/codegen/native_op.h"

namespace weft::native_ops_test {

class NativeOps : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  }
};

TEST_F(NativeOps, GiveTheBitsOfTheirMeaning) {
  const auto context = native_context();
  for (const char* name :
       {"gelu", "gelu_tanh", "gelu_tanh_and_mul", "mul_and_silu", "quick_gelu", "relu2", "rms_norm",
        "fused_add_rms_norm", "per_token_group_quant_int8", "per_token_group_quant_fp8",
        "dynamic_per_token_scaled_int8_quant", "dynamic_per_token_scaled_fp8_quant", "static_scaled_fp8_quant",
        "silu_and_mul_per_token_group_quant_int8", "fused_add_rms_norm_per_token_group_quant_int8",
        "rms_norm_dynamic_per_token_scaled_fp8_quant", "scaled_fp4_quant", "silu_and_mul_scaled_fp4_quant",
        "softmax"}) {
    const Op& op = context->ops.at(name);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const SampleCall call = make_sample_call(op, op.samples.front(), dtype);
      SCOPED_TRACE(call.text);
      const NativeOutcome outcome = run_native_op(op, call, *context);
      EXPECT_EQ(outcome.functions, 1);
      EXPECT_EQ(outcome.others, 0);
    }
  }
}

// A bound of the magnitudes or the scales of groups is one number for all rows.
TEST_F(NativeOps, HoldGroupsToABoundInOneFunction) {
  const auto context = native_context();
  for (const char* name : {"per_token_group_quant_fp8", "silu_and_mul_per_token_group_quant_fp8",
                           "rms_norm_per_token_group_quant_fp8", "fused_add_rms_norm_per_token_group_quant_fp8"}) {
    const Op& op = context->ops.at(name);
    for (const auto& [of, bound] : {std::pair{"magnitude", 1.8f}, {"scale", 0.004f}, {"scale", NAN}}) {
      Sample sample = op.samples.front();
      sample.tensors.push_back({"scale_ub", {1}, DType::f32});
      sample.attributes.emplace_back("scale_ub_of", EnumWord{of});
      SampleCall call = make_sample_call(op, sample, DType::bf16);
      *call.operands[op.schema.tensor_count() - 1].as<float>() = bound;
      SCOPED_TRACE(call.text);
      const NativeOutcome outcome = run_native_op(op, call, *context);
      EXPECT_EQ(outcome.functions, 1);
      EXPECT_EQ(outcome.others, 0);
    }
  }
}

// Widths that fill no vector, one that fills it and one more, and values that are none.
TEST_F(NativeOps, KeepBitsAtOddWidthsWithInfinitiesAndNaN) {
  for (const std::string& features : vector_features_to_try()) {
    const auto context = native_context(features);
    for (const char* name : {"silu_and_mul", "gelu_and_mul", "rms_norm", "fused_add_rms_norm", "softmax",
                             "dynamic_per_token_scaled_int8_quant", "dynamic_per_token_scaled_fp8_quant"}) {
      const Op& op = context->ops.at(name);
      for (std::int64_t width : {2, 30, 66, 130}) {
        Sample sample = op.samples.front();
        for (SampleTensor& tensor : sample.tensors)
          if (tensor.shape.back() != 1) tensor.shape.back() = width;
        for (const DType dtype : {DType::f32, DType::bf16}) {
          SampleCall call = make_sample_call(op, sample, dtype);
          Tensor& x = call.operands[0];
          const double odd[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 3e38, 1e-41};
          for (std::int64_t i = 0; i < 7; ++i) store_double(x.meta.dtype, x.data(), i * 5 % width, odd[i]);
          SCOPED_TRACE(fmt::format("{} {} {} {}", name, width, dtype_text(dtype), features));
          EXPECT_GT(run_native_op(op, call, *context).functions, 0);
        }
      }
    }
  }
}

// silu of bf16 divides by less than silu of f32.
TEST_F(NativeOps, GiveTheBitsOfSiluForEveryBfloat) {
  for (const std::string& features : vector_features_to_try()) {
    const auto context = native_context(features);
    const Op& op = context->ops.at("silu_and_mul");
    SampleCall call = make_sample_call(op, {{{"x", {512, 256}}}, {}}, DType::bf16);
    for (int code = 0; code < 65536; ++code) {
      auto* row = static_cast<std::uint16_t*>(static_cast<void*>(call.operands[0].data())) + code / 128 * 256;
      row[code % 128] = static_cast<std::uint16_t>(code);
      row[code % 128 + 128] = 0x3f80;  // 1
    }
    EXPECT_EQ(run_native_op(op, call, *context).functions, 1);
  }
}

// Codes use quotients by reciprocals, without limits, for groups of any magnitude and for infinities and NaN.
TEST_F(NativeOps, GiveTheCodesOfAnyValues) {
  std::mt19937 random(5);
  for (const std::string& features : vector_features_to_try()) {
    const auto context = native_context(features);
    for (const char* name : {"per_token_group_quant_int8", "per_token_group_quant_fp8"})
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
        const Op& op = context->ops.at(name);
        SampleCall call = make_sample_call(op, {{{"x", {512, 256}}}, {{"group_size", std::int64_t{32}}}}, dtype);
        Tensor& x = call.operands[0];
        constexpr double kOdd[] = {INFINITY, -INFINITY, NAN, -0.0, 3e38, 1e-41, -1e-45};
        for (std::int64_t i = 0; i < 512 * 256; ++i) {
          const double magnitude = std::exp2(static_cast<double>(i / 32 % 270) - 140);
          const double value = (static_cast<double>(random() % 65536) / 32768 - 1) * magnitude;
          store_double(dtype, x.data(), i, random() % 512 == 0 ? kOdd[random() % 7] : value);
        }
        SCOPED_TRACE(fmt::format("{} {} {}", name, dtype_text(dtype), features));
        EXPECT_EQ(run_native_op(op, call, *context).functions, 1);
      }
  }
}

TEST_F(NativeOps, RefuseRowNumbersOutsideOfTheTable) {
  const auto context = native_context();
  context->priorities.set("index_select", {"native"});
  auto graph = parse_graph(
      "graph g(%t: f32[7, 32], %i: i64[s0]) stage=traced where s0 in [1, 64] {\n"
      "  %r: f32[s0, 32] = index_select(%t, %i, dim=0)\n  %y: f32[s0, 32] = silu(%r)\n  return %y\n}\n",
      context->ops);
  Replay replay(compile(*graph, *context, {1, 64}, {}).plan, *context->threads);
  const Tensor table = Tensor::empty(Meta::tensor(DType::f32, {7, 32}));
  std::memset(table.data(), 0, 7 * 32 * 4);
  const Tensor numbers = Tensor::empty(Meta::tensor(DType::i64, {2}));
  auto* number = numbers.view().as<std::int64_t>();
  replay.bind(0, table);
  replay.bind(1, numbers);
  for (const std::int64_t wrong : {-1, 7}) {
    number[0] = 6;
    number[1] = wrong;
    try {
      replay.run();
      ADD_FAILURE() << wrong;
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()), fmt::format("[index_select] index {} is outside [0, 7)", wrong));
    }
  }
  number[1] = 0;
  replay.run();
}

// `layers` times a norm, a product, a gated activation and a product back.
std::shared_ptr<Graph> layers_of(int layers, const Context& context) {
  std::string inputs, body, sum = "x";
  for (int i = 0; i < layers; ++i) {
    inputs += fmt::format(
        ", param(\"n{0}\") %n{0}: f32[64], param(\"u{0}\") %u{0}: f32[192, 64], param(\"d{0}\") "
        "%d{0}: f32[64, 96]",
        i);
    body += fmt::format(
        "  %h{0}: f32[s0, 64] = rms_norm(%{1}, %n{0}, epsilon=1e-05)\n"
        "  %g{0}: f32[s0, 192] = linear(%h{0}, %u{0})\n"
        "  %a{0}: f32[s0, 96] = silu_and_mul(%g{0})\n"
        "  %o{0}: f32[s0, 64] = linear(%a{0}, %d{0})\n"
        "  %r{0}: f32[s0, 64] = add(%{1}, %o{0})\n",
        i, sum);
    sum = fmt::format("r{}", i);
  }
  const std::string text = fmt::format(
      "graph g(%x: f32[s0, 64]{}) stage=traced where s0 in [1, 64] {{\n{}  return %{}\n}}\n", inputs, body, sum);
  return parse_graph(text, context.ops);
}

TEST_F(NativeOps, CompileAsManyFunctionsForSixLayersAsForTwo) {
  std::size_t counts[2];
  for (int i = 0; i < 2; ++i) {
    const auto context = native_context();
    context->priorities.set("add", {"native"});
    auto graph = layers_of(i == 0 ? 2 : 6, *context);
    const Compiled compiled = compile(*graph, *context, {1, 64}, {});
    counts[i] = context->generated->size();
    int calls = 0;
    for (const PlanStep& step : compiled.plan->steps) calls += step.op.starts_with("rows_") ? 1 : 0;
    EXPECT_EQ(calls, i == 0 ? 5 : 13);  // two for each layer, and the last sum
  }
  EXPECT_EQ(counts[0], counts[1]);
  EXPECT_EQ(counts[0], 4u);  // first norm, activation, sum with norm, last sum
}

TEST_F(NativeOps, GiveTheSameBitsWithAnyNumberOfThreads) {
  const std::string text =
      "graph g(%x: f32[s0, 256], %y: f32[s0, 256], %w: f32[256]) stage=traced where s0 in [1, 4096] {\n"
      "  %n: f32[s0, 256], %r: f32[s0, 256] = fused_add_rms_norm(%x, %y, %w, epsilon=1e-05)\n"
      "  %q: i8[s0, 256], %s: f32[s0, 8] = per_token_group_quant_int8(%n, group_size=32)\n"
      "  return %q, %s, %r\n}\n";
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 5}) {
    const auto context = native_context("host", threads);
    auto graph = parse_graph(text, context->ops);
    Replay replay(compile(*graph, *context, {1, 4096}, {}).plan, *context->threads);
    std::vector<Tensor> inputs;
    for (const Shape& shape : {Shape{1500, 256}, Shape{1500, 256}, Shape{256}}) {
      inputs.push_back(Tensor::empty(Meta::tensor(DType::f32, shape)));
      const std::int64_t count = element_count(shape).number();
      for (std::int64_t i = 0; i < count; ++i)
        inputs.back().view().as<float>()[i] = static_cast<float>((i * 7919 + 13) % 2003) / 500.0f - 2.0f;
      replay.bind(inputs.size() - 1, inputs.back());
    }
    replay.run();
    for (std::size_t i = 0; i < 3; ++i) {
      if (threads == 1) {
        const Tensor result = replay.result(i);
        first.push_back(Tensor::empty(result.meta));
        std::memcpy(first.back().data(), result.data(), static_cast<std::size_t>(result.meta.bytes().number()));
      } else {
        EXPECT_EQ(difference(first[i], replay.result(i), {}, true), "") << threads << " threads, result " << i;
      }
    }
  }
}

}  // namespace weft::native_ops_test
