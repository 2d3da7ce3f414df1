// Attention by the matrix units: the op's meaning for every end of tiles and pages, the calls that it takes, and the
// bytes of K and V that it reads.

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "compiler/run/sample_call.h"
#include "kernels/cuda/emulator/approximation.h"
#include "kernels/cuda/lib/attention_plan.h"
#include "kernels/select.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#include "tests/cuda/attention_case.h"
#include "tests/cuda/cuda_context.h"

namespace weft::attention_mma_test {

constexpr const char* kProvider = "cuda_mma";

KvLayout layout(DType dtype, std::int64_t block, std::int64_t heads, std::int64_t head_dim) {
  return {.dtype = dtype, .block = block, .heads = heads, .head_dim = head_dim};
}

Tensor by_matrices(const Context& context, const SampleCall& call, std::size_t scratch = 0) {
  return attend(context, call.operands, call.attributes, scratch, kProvider);
}

// The kernel that a call with this number of tokens launches.
std::string kernel_of(std::int64_t tokens, std::int64_t sequences, std::int64_t group) {
  return cuda::plan_attention({.tokens = tokens,
                               .sequences = sequences,
                               .heads = 2 * group,
                               .kv_heads = 2,
                               .head_dim = 64,
                               .table_tokens = 512,
                               .multiprocessors = 132},
                              cuda::AttentionDesign::matrix_units)
      .kernel;
}

TEST(CudaMmaAttention, GivesTheMeaningAtEveryEpilogue) {
  const auto context = cuda_context();
  // Tiles of 1 to 64 rows, whole and partial pages, chunks that are no part of a page, several segments.
  const AttentionCase::Sequences tails = {{1, 1}, {15, 15}, {16, 16}, {17, 40}, {33, 33}, {33, 300}};
  const std::vector<AttentionCase> cases = {
      {layout(DType::bf16, 16, 1, 64), 1, DType::bf16, tails},
      {layout(DType::f16, 16, 2, 64), 3, DType::f16, tails},
      {layout(DType::f16, 32, 1, 128), 4, DType::bf16, tails},
      {layout(DType::bf16, 8, 1, 128), 8, DType::bf16, {{17, 17}, {1, 270}, {33, 65}}},
      {layout(DType::f16, 12, 1, 64), 3, DType::f16, {{64, 64}, {22, 70}}},
      {layout(DType::f16, 1, 1, 128), 1, DType::f16, {{65, 129}}},
      {layout(DType::bf16, 5, 2, 64), 4, DType::bf16, {{15, 257}, {33, 256}}},
  };
  for (const AttentionCase& one : cases) {
    const SampleCall call = one.call(*context);
    SCOPED_TRACE(call.text);
    ASSERT_TRUE(supports_of_cuda(*context, "attention", call.operands, call.attributes, kProvider));
    EXPECT_NE(kernel_of(one.rows(), static_cast<std::int64_t>(one.sequences.size()), one.group).find("_mma"),
              std::string::npos);
    const Tensor wanted = meaning_of(*context, "attention", call.operands, call.attributes)[0];
    for (const std::size_t scratch : {std::size_t{0}, kAttentionScratch})
      EXPECT_EQ(
          difference(wanted, by_matrices(*context, call, scratch), context->ops.at("attention").tolerance(one.query)),
          "");
  }
}

TEST(CudaMmaAttention, GivesTheMeaningInWindows) {
  const auto context = cuda_context();
  for (const int window : {1, 7, 16, 64, 100, 270, 800})
    for (const AttentionCase& one :
         {AttentionCase{layout(DType::f16, 16, 1, 64), 3, DType::f16, {{33, 33}, {70, 330}, {1, 270}}, window},
          AttentionCase{layout(DType::bf16, 5, 1, 128), 1, DType::bf16, {{130, 600}}, window}}) {
      const SampleCall call = one.call(*context);
      SCOPED_TRACE(call.text);
      const Tensor wanted = meaning_of(*context, "attention", call.operands, call.attributes)[0];
      for (const std::size_t scratch : {std::size_t{0}, kAttentionScratch})
        EXPECT_EQ(
            difference(wanted, by_matrices(*context, call, scratch), context->ops.at("attention").tolerance(one.query)),
            "");
    }
}

TEST(CudaMmaAttention, SharesLongSequencesAmongBlocks) {
  const auto context = cuda_context();
  const AttentionCase one{layout(DType::f16, 16, 1, 64), 3, DType::f16, {{20, 700}, {9, 257}, {1, 256}}};
  const SampleCall call = one.call(*context);
  const Tensor wanted = meaning_of(*context, "attention", call.operands, call.attributes)[0];
  const Tensor alone = by_matrices(*context, call), shared = by_matrices(*context, call, kAttentionScratch);
  const Tolerance tolerance = context->ops.at("attention").tolerance(one.query);
  EXPECT_EQ(difference(wanted, alone, tolerance), "");
  EXPECT_EQ(difference(wanted, shared, tolerance), "");
  EXPECT_NE(difference(alone, shared, {}, true), "") << "no segment was summed by itself";
  EXPECT_EQ(bytes_of_row(alone, 29), bytes_of_row(shared, 29)) << "a sequence of one segment was shared";
}

// Sets the tokens from `from` on to this code, in K and V.
void spoil(const SampleCall& call, const KvLayout& kv, std::int64_t from, std::int64_t to, std::uint16_t code) {
  auto* pages = reinterpret_cast<std::uint16_t*>(call.operands[1].data());
  const std::int64_t block = kv.block, columns = kv.head_dim;
  for (std::int64_t token = from; token < to; ++token)
    for (std::int64_t column = 0; column < columns; ++column)
      pages[kv_key_offset(kv, token / block, 0) + column * block + token % block] =
          pages[kv_value_offset(kv, token / block, 0) + token % block * columns + column] = code;
}

TEST(CudaMmaAttention, ShowsNothingOfTokensThatARowDoesNotSee) {
  const auto context = cuda_context();
  constexpr int kLength = 70, kRows = 24, kSpoilt = 60;
  for (const auto& [dtype, code] : {std::pair<DType, std::uint16_t>{DType::f16, 0x7e00},  // NaN
                                    {DType::bf16, 0x7fc0},
                                    {DType::f16, 0x7c00},  // infinity
                                    {DType::bf16, 0xff80}}) {
    const KvLayout kv = layout(dtype, 16, 1, 64);
    const SampleCall call = AttentionCase{kv, 1, dtype, {{kRows, kLength}}}.call(*context);
    const Tensor before = by_matrices(*context, call);
    spoil(call, kv, kLength, 80, code);
    EXPECT_EQ(difference(before, by_matrices(*context, call), {}, true), "") << "what lies behind the end shows";
    spoil(call, kv, kSpoilt, kLength, code);
    const Tensor after = by_matrices(*context, call);
    for (std::int64_t row = 0; row < kRows; ++row) {
      if (kLength - kRows + 1 + row <= kSpoilt) {
        EXPECT_EQ(bytes_of_row(after, row), bytes_of_row(before, row)) << row << " shows what it does not see";
      } else {
        EXPECT_NE(bytes_of_row(after, row), bytes_of_row(before, row)) << row << " does not show what it sees";
      }
    }
  }
}

TEST(CudaMmaAttention, ShowsNothingOfTokensBeforeTheWindow) {
  const auto context = cuda_context();
  constexpr int kLength = 90, kSpoilt = 21, kWindow = 9;
  for (const auto& [dtype, code] : {std::pair<DType, std::uint16_t>{DType::f16, 0x7e00}, {DType::bf16, 0xff80}}) {
    const KvLayout kv = layout(dtype, 16, 1, 64);
    const SampleCall call = AttentionCase{kv, 1, dtype, {{kLength, kLength}}, kWindow}.call(*context);
    const Tensor before = by_matrices(*context, call);
    spoil(call, kv, kSpoilt, kSpoilt + 1, code);
    const Tensor after = by_matrices(*context, call);
    for (std::int64_t row = 0; row < kLength; ++row)
      EXPECT_EQ(bytes_of_row(after, row) == bytes_of_row(before, row), row < kSpoilt || row >= kSpoilt + kWindow)
          << row;
  }
}

// For any order and rounding of the matrix units, and any error of the exponential.
TEST(CudaMmaAttention, StaysWithinTheToleranceWhateverTheDeviceRounds) {
  const auto context = cuda_context();
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const AttentionCase one{layout(dtype, 16, 1, 128), 2, dtype, {{18, 280}, {5, 5}}};
    const SampleCall call = one.call(*context);
    const Tensor wanted = meaning_of(*context, "attention", call.operands, call.attributes)[0];
    const Tensor exact = by_matrices(*context, call);
    for (const cuda::Approximation approximation :
         {cuda::Approximation::upwards, cuda::Approximation::downwards, cuda::Approximation::scattered}) {
      cuda::current_approximation = approximation;
      const Tensor came = by_matrices(*context, call);
      cuda::current_approximation = cuda::Approximation::exact;
      EXPECT_EQ(difference(wanted, came, context->ops.at("attention").tolerance(dtype)), "");
      EXPECT_NE(difference(exact, came, {}, true), "") << "no approximation was moved";
    }
  }
}

// Queries of bf16 that f16 has no room for, and ones that it would take for 0, have the bits of ordinary ones.
TEST(CudaMmaAttention, TakesQueriesOfEveryMagnitude) {
  const auto context = cuda_context();
  const AttentionCase one{layout(DType::f16, 16, 1, 64), 1, DType::bf16, {{20, 33}}};
  const SampleCall call = one.call(*context);
  const Tensor wanted = by_matrices(*context, call);
  for (const int power : {100, -100}) {
    SampleCall moved = one.call(*context);
    auto* codes = reinterpret_cast<std::uint16_t*>(moved.operands[0].data());
    for (std::int64_t i = 0; i < one.rows() * 64; ++i) codes[i] = f32_to_bf16(std::ldexp(bf16_to_f32(codes[i]), power));
    moved.attributes = complete_attributes(context->ops.at("attention").schema, {{"scale", std::ldexp(0.125, -power)}});
    EXPECT_EQ(difference(wanted, by_matrices(*context, moved), {}, true), "") << power;
  }
}

TEST(CudaMmaAttention, GetsTheCallsThatHaveRowsForIt) {
  EXPECT_EQ(kernel_of(16, 1, 1), "attention_f16_64_mma");
  EXPECT_EQ(kernel_of(15, 1, 1), "attention_f16_64_prefill");
  EXPECT_EQ(kernel_of(2, 1, 8), "attention_f16_64_mma");
  EXPECT_EQ(kernel_of(5, 4, 8), "attention_f16_64_prefill");
  EXPECT_EQ(kernel_of(4, 4, 32), "attention_f16_64_decode");
  // The rest has provider cuda's bits, being computed by the same kernels.
  const auto context = cuda_context();
  const KvLayout kv = layout(DType::f16, 16, 1, 64);
  for (const AttentionCase::Sequences& sequences :
       {AttentionCase::Sequences{{1, 300}, {1, 5}}, AttentionCase::Sequences{{7, 300}, {1, 5}}}) {
    const SampleCall call = AttentionCase{kv, 1, DType::f16, sequences}.call(*context);
    EXPECT_EQ(difference(attend(*context, call.operands, call.attributes, kAttentionScratch),
                         by_matrices(*context, call, kAttentionScratch), {}, true),
              "");
  }
}

TEST(CudaMmaAttention, SaysWhatItDoesNotTake) {
  const auto context = cuda_context();
  const auto refusal = [&](const KvLayout& kv, DType query) {
    const SampleCall call = AttentionCase{kv, 1, query, {{20, 20}}}.call(*context);
    return supports_of_cuda(*context, "attention", call.operands, call.attributes, kProvider).reason();
  };
  EXPECT_EQ(refusal(layout(DType::f16, 16, 1, 80), DType::f16), "heads have 80 columns; 64 and 128 are supported");
  EXPECT_EQ(refusal(layout(DType::bf16, 16, 1, 256), DType::bf16), "heads have 256 columns; 64 and 128 are supported");
  for (const auto& [pages, query] :
       {std::pair{DType::f32, DType::f16}, {DType::bf16, DType::f16}, {DType::f16, DType::f32}})
    EXPECT_NE(refusal(layout(pages, 16, 1, 64), query).find("bf16 with bf16 or f16 and f16 with f16"),
              std::string::npos);
}

// The result of a row depends on the other rows.
TEST(CudaMmaAttention, ComesFirstUnlessRowsMustNotDependOnTheBatch) {
  const auto context = cuda_context();
  const auto first = [&](bool batch_invariant) {
    for (const Candidate& candidate :
         list_candidates(context->kernels, context->priorities, "attention", batch_invariant))
      if (candidate.kernel != nullptr) return candidate.provider;
    return std::string();
  };
  EXPECT_EQ(first(false), kProvider);
  EXPECT_EQ(first(true), "cuda");
}

// For a prompt, once for each 64 rows, in whole sectors.
TEST(CudaMmaAttention, ReadsKAndVOnceATileInWholeSectors) {
  const auto context = cuda_context();
  constexpr std::int64_t kLength = 256, kTokens = 64 * (1 + 2 + 3 + 4);
  for (const std::int64_t head_dim : {64, 128}) {
    const KvLayout kv = layout(DType::f16, 16, 1, head_dim);
    const SampleCall made = AttentionCase{kv, 1, DType::bf16, {{kLength, kLength}}}.call(*context);
    const std::vector<cuda::AccessTraffic> most = attention_traffic(*context, made, kProvider);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(most[i].bytes, kTokens * head_dim * 2) << most[i].place;
      EXPECT_EQ(most[i].sectors * 32, most[i].bytes) << most[i].place;
    }
    for (const cuda::AccessTraffic& access : most) {
      if (access.writes) {
        EXPECT_EQ(access.sectors * 32, access.bytes) << access.place;
      }
    }
  }
}

// The largest is multiplied by zeros, so that the small ones decide.
TEST(CudaMmaAttention, TakesSmallQueriesBesideALargeOne) {
  const auto context = cuda_context();
  const KvLayout kv = layout(DType::f16, 16, 1, 64);
  for (const DType query : {DType::f16, DType::bf16}) {
    const SampleCall call = AttentionCase{kv, 1, query, {{20, 33}}}.call(*context);
    auto* queries = reinterpret_cast<std::uint16_t*>(call.operands[0].data());
    auto* pages = reinterpret_cast<std::uint16_t*>(call.operands[1].data());
    const auto code = [&](float x) { return query == DType::f16 ? f32_to_f16(x) : f32_to_bf16(x); };
    for (int i = 0; i < 20 * 64; ++i)
      queries[i] = code(i % 64 == 0 ? 32768.0f : static_cast<float>(i * 7 % 31 - 15) * 0x1p-13f);
    for (int token = 0; token < 33; ++token)
      for (int column = 0; column < 64; ++column)
        pages[kv_key_offset(kv, token / 16, 0) + column * 16 + token % 16] =
            f32_to_f16(column == 0 ? 0 : static_cast<float>((token * 13 + column * 5) % 29 - 14) * 256);
    const Tensor wanted = meaning_of(*context, "attention", call.operands, call.attributes)[0];
    EXPECT_EQ(difference(wanted, by_matrices(*context, call), context->ops.at("attention").tolerance(query)), "");
  }
}

}  // namespace weft::attention_mma_test
