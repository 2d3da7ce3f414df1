// The bytes and operations of steps, against sums by hand.

#include "compiler/step_work.h"

#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "ir/parse.h"
#include "ops/all.h"
#include "tests/test_context.h"

namespace weft::step_work_test {

constexpr std::int64_t kTokenBytes = 2 * 2 * 2 * 16;  // keys and values, 2 heads of 16, of 2 bytes each

// `window` is an attribute of the attention, or "".
std::string attention_text(const std::string& window) {
  return "graph g(%q: bf16[s0, 4, 16], %k: bf16[s0, 2, 16], %v: bf16[s0, 2, 16], "
         "donated %kv: kv[bf16, block=16, heads=2, head_dim=16], %slots: i64[s0], %batch: batch) "
         "stage=pure where s0 in [1, 8] {\n"
         "  %n: kv[bf16, block=16, heads=2, head_dim=16] = kv_cache_update(%k, %v, %kv, %slots)\n"
         "  %y: bf16[s0, 4, 16] = attention(%q, %n, %batch, scale=0.25" +
         window + ")\n  return %y, %n\n}\n";
}

class StepWorkOf : public ::testing::Test {
 protected:
  StepWork work(const std::string& text, std::int64_t rows, std::int64_t cached) const {
    return work_of(*graph(text), sizes(rows, cached), [](const GraphValue& param) {
      return param.meta.packed.empty() ? param.meta.bytes().number() : 1000;
    });
  }
  std::shared_ptr<Graph> graph(const std::string& text) const { return parse_graph(text, context_->ops); }
  static StepSizes sizes(std::int64_t rows, std::int64_t cached) {
    return {.rows = rows, .cached = cached, .symbols = {{"s0", rows}}};
  }

  std::shared_ptr<Context> context_ = test_context();
};

TEST_F(StepWorkOf, CountsAWeightOnceHoweverOftenItIsRead) {
  const StepWork found = work(
      "graph g(%x: f32[s0, 32], param %w: f32[32, 32], param %b: f32[32]) stage=traced where s0 in [1, 8] {\n"
      "  %y: f32[s0, 32] = linear(%x, %w, %b)\n"
      "  %z: f32[s0, 32] = linear(%y, %w, none)\n"
      "  return %z\n}\n",
      3, 0);
  EXPECT_EQ(found.weight_bytes, 4 * (32 * 32 + 32));
  EXPECT_EQ(found.product_operations, 2 * (2 * 3 * 32 * 32));
  EXPECT_EQ(found.operations_of_16_bits + found.operations_of_8_bits, 0);
  EXPECT_EQ(found.least_bytes(), found.weight_bytes);
}

TEST_F(StepWorkOf, CountsThePackedBytesOfCodes) {
  const StepWork found = work(
      "graph g(%x: i8[s0, 64], %s: f32[s0, 2], param %w: q4_1[96, 64] packed=q4x32) stage=traced where s0 in [1, 8] {\n"
      "  %y: f32[s0, 96] = linear_int8(%x, %s, %w)\n"
      "  return %y\n}\n",
      5, 0);
  EXPECT_EQ(found.weight_bytes, 1000);
  EXPECT_EQ(found.product_operations, 2 * 5 * 64 * 96);
  EXPECT_EQ(found.operations_of_8_bits, found.product_operations);
}

TEST_F(StepWorkOf, CountsGatheredRowsOfTables) {
  const std::string text =
      "graph g(%ids: i64[s0], param %w: bf16[100, 64]) stage=traced where s0 in [1, 200] {\n"
      "  %y: bf16[s0, 64] = embedding(%ids, %w, dtype=bf16)\n"
      "  return %y\n}\n";
  EXPECT_EQ(work(text, 3, 0).weight_bytes, 3 * 64 * 2);
  EXPECT_EQ(work(text, 200, 0).weight_bytes, 100 * 64 * 2);
}

TEST_F(StepWorkOf, CountsPagesAndAttentionByWhatRowsSee) {
  const auto& text = attention_text;
  const StepWork all = work(text(""), 3, 10);
  EXPECT_EQ(all.kv_read_bytes, 10 * kTokenBytes);
  EXPECT_EQ(all.kv_written_bytes, 3 * kTokenBytes);
  EXPECT_EQ(all.attention_operations, 4 * (11 + 12 + 13) * 4 * 16);
  EXPECT_EQ(all.operations_of_16_bits, all.attention_operations);
  const StepWork windowed = work(text(", window=5"), 3, 10);
  EXPECT_EQ(windowed.kv_read_bytes, 4 * kTokenBytes);
  EXPECT_EQ(windowed.attention_operations, 4 * (5 + 5 + 5) * 4 * 16);
  EXPECT_EQ(work(text(", window=50"), 3, 10).attention_operations, all.attention_operations);
  EXPECT_EQ(work(text(""), 1, 0).kv_read_bytes, 0);
}

TEST_F(StepWorkOf, SequencesShareWeightsAndHavePagesOfTheirOwn) {
  const auto step = [&](std::int64_t rows, std::int64_t sequences) {
    StepSizes of_all = sizes(rows, 10);
    of_all.sequences = sequences;
    return work_of(*graph(attention_text("")), of_all, [](const auto& param) { return param.meta.bytes().number(); });
  };
  const StepWork one = step(2, 1), four = step(8, 4);
  EXPECT_EQ(four.kv_read_bytes, 4 * one.kv_read_bytes);
  EXPECT_EQ(four.kv_written_bytes, 4 * one.kv_written_bytes);
  EXPECT_EQ(four.attention_operations, 4 * one.attention_operations);
}

// Cut into pieces a graph has the same work, since params are inputs of pieces.
TEST_F(StepWorkOf, IsTheSameAtEveryStage) {
  const std::string text =
      "graph g(%x: f32[s0, 32], param %w: f32[64, 32], param %v: f32[32, 32], %positions: i64[s0], "
      "param %table: f32[40, 16]) stage=traced where s0 in [1, 8] {\n"
      "  %y: f32[s0, 64] = linear(%x, %w, none)\n"
      "  %a: f32[s0, 32] = silu_and_mul(%y)\n"
      "  %z: f32[s0, 32] = linear(%a, %v, none)\n"
      "  %q: f32[s0, 32], %k: f32[s0, 32] = rotary_embedding(%positions, %z, %a, %table, head_size=16, rotary_dim=16)\n"
      "  return %q, %k\n}\n";
  const StepWork traced = work(text, 4, 0);
  EXPECT_EQ(traced.weight_bytes, 4 * (64 * 32 + 32 * 32) + 4 * 4 * 16);
  for (const char* backend : {"weft", "eager"}) {
    context_->options.backend = backend;
    const CompiledRanges compiled = compile_ranges(*graph(text), *context_, {{1, 8}}, {});
    const StepWork split =
        work_of(*compiled.records[0].split, sizes(4, 0), [](const auto& param) { return param.meta.bytes().number(); });
    EXPECT_EQ(split.weight_bytes, traced.weight_bytes) << backend;
    EXPECT_EQ(split.product_operations, traced.product_operations) << backend;
    EXPECT_GE(activation_bytes(*compiled.plans[0], {{"s0", 4}}), 4 * 4 * (32 + 64 + 64 + 32 + 32 + 2 * 32)) << backend;
  }
}

}  // namespace weft::step_work_test
