#include "ops/attention.h"

#include <cmath>

#include <gtest/gtest.h>

#include "compiler/run/interpret.h"
#include "compiler/run/sample_call.h"
#include "tensor/convert.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::attention_op_test {

// Softmax over only the tokens in the window, for the pages of a sample, in double.
std::vector<double> masked_softmax(const std::vector<Tensor>& operands, int rows, int length, int window,
                                   double scale) {
  const KvLayout& kv = operands[1].meta.kv;
  const Batch& batch = *operands[2].view().as<Batch>();
  const std::int64_t heads = operands[0].meta.shape[1].number(), width = kv.head_dim;
  const auto of_page = [&](std::int64_t offset) { return load_float(kv.dtype, operands[1].data(), offset); };
  std::vector<double> output;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t position = length - rows + row;
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t kv_head = head * kv.heads / heads;
      std::vector<double> sums(static_cast<std::size_t>(width));
      double total = 0;
      for (std::int64_t t = 0; t <= position; ++t) {
        if (t <= position - window) continue;
        const std::int64_t page = batch.block_table[t / kv.block], place = t % kv.block;
        double score = 0;
        for (std::int64_t i = 0; i < width; ++i)
          score += double{operands[0].as<float>()[(row * heads + head) * width + i]} *
                   of_page(kv_key_offset(kv, page, kv_head) + i * kv.block + place);
        const double weight = std::exp(score * scale);
        total += weight;
        for (std::int64_t i = 0; i < width; ++i)
          sums[static_cast<std::size_t>(i)] += weight * of_page(kv_value_offset(kv, page, kv_head) + place * width + i);
      }
      for (const double sum : sums) output.push_back(sum / total);
    }
  }
  return output;
}

TEST(Attention, SeesItsOwnTokenAndThoseBeforeItInTheWindow) {
  const auto context = test_context();
  const KvLayout kv{.dtype = DType::f16, .block = 8, .heads = 2, .head_dim = 16};
  for (const auto& [rows, length] : {std::pair{20, 20}, {7, 30}, {1, 30}})  // a prompt, a part of one, a token
    for (const int window : {1, 3, 8, 12, 30, 100}) {
      const Sample sample{{{"query", {rows, 6, 16}},
                           SampleTensor::pages("kv", kv, 4),
                           SampleTensor::batch("batch", {{rows, length}}, 8)},
                          {{"scale", 0.25}, {"window", window}}};
      const SampleCall call = make_sample_call(context->ops.at("attention"), sample, DType::f32);
      Interpreter interpreter(*context);
      const Values v = values_of(interpreter, call.operands);
      const Tensor came = attention(v[0], v[1], v[2], {}, {}, 0.25, window).tensor();
      const std::vector<double> wanted = masked_softmax(call.operands, rows, length, window, 0.25);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(came.as<float>()[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i]))) << call.text << " at " << i;
    }
}

TEST(Attention, RefusesAWindowOfNoTokens) {
  const auto context = test_context();
  const std::optional<Meta> query = Meta::tensor(DType::f32, {3, 4, 16});
  const std::optional<Meta> kv = Meta::pages({.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 16});
  const std::optional<Meta> scale = Meta::tensor(DType::f32, {1});
  for (const char* name : {"attention", "attention_static_scaled_fp8_quant", "attention_scaled_fp4_quant"}) {
    const Op& op = context->ops.at(name);
    std::vector<std::optional<Meta>> operands{query, kv, Meta::batch()};
    if (op.name != "attention") operands.push_back(scale);
    for (const int window : {0, -4})
      EXPECT_EQ(message_of([&] {
                  infer_results(op, context->ops, operands,
                                complete_attributes(op.schema, {{"scale", 0.25}, {"window", window}}));
                }),
                fmt::format("[{}] window must be 1 or more tokens, a row's own among them, or none, but is {}", name,
                            window));
  }
}

TEST(Attention, RefusesABiasOfOtherHeadsOrAnEvenNumberOfDistances) {
  const auto context = test_context();
  const Op& op = context->ops.at("attention");
  const std::optional<Meta> query = Meta::tensor(DType::f32, {3, 4, 16});
  const std::optional<Meta> kv = Meta::pages({.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 16});
  const auto refusal = [&](const Meta& bias) {
    const std::vector<std::optional<Meta>> operands{query, kv, Meta::batch(), std::nullopt, bias};
    return message_of([&] {
      infer_results(op, context->ops, operands, complete_attributes(op.schema, {{"scale", 0.25}}));
    });
  };
  EXPECT_EQ(refusal(Meta::tensor(DType::f32, {4, 9})), "");
  for (const Meta& bias : {Meta::tensor(DType::f32, {4, 8}), Meta::tensor(DType::f32, {2, 9}),
                           Meta::tensor(DType::f32, {4}), Meta::tensor(DType::bf16, {4, 9})})
    EXPECT_EQ(refusal(bias),
              fmt::format("[attention] bias must be f32[4, an odd number of distances] to match query: {}, but is {}",
                          query->text(), bias.text()));
}

}  // namespace weft::attention_op_test
