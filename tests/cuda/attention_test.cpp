// Attention over KV pages: the op's meaning for all heads, pages and batches. The bits of a row depend neither on other
// rows nor on the number of blocks that share its tokens.

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "compiler/run/sample_call.h"
#include "emulator/approximation.h"
#include "tensor/batch.h"
#include "tests/cuda/attention_case.h"
#include "tests/cuda/cuda_context.h"

namespace weft::attention_test {

TEST(CudaAttention, GivesTheMeaningOfManyForms) {
  const auto context = cuda_context();
  const auto layout = [](DType dtype, std::int64_t block, std::int64_t heads, std::int64_t head_dim) {
    return KvLayout{.dtype = dtype, .block = block, .heads = heads, .head_dim = head_dim};
  };
  const std::vector<AttentionCase> cases = {
      {layout(DType::f16, 16, 3, 64), 3, DType::bf16, {{1, 20}, {1, 300}, {1, 64}, {1, 65}}},
      {layout(DType::f16, 16, 1, 64), 3, DType::f32, {{40, 40}, {1, 270}, {7, 263}}},
      {layout(DType::bf16, 32, 2, 128), 4, DType::bf16, {{1, 530}, {5, 260}}},
      {layout(DType::f32, 16, 1, 128), 8, DType::f32, {{9, 70}}},
      {layout(DType::f32, 1, 2, 64), 1, DType::f16, {{1, 90}, {3, 3}}},
      {layout(DType::f16, 12, 1, 80), 2, DType::f16, {{4, 150}, {1, 1}}},
      {layout(DType::bf16, 8, 1, 256), 5, DType::f32, {{3, 80}, {1, 66}}},
      {layout(DType::f16, 16, 1, 8), 33, DType::f32, {{2, 10}, {1, 257}}},
  };
  for (const AttentionCase& one : cases) {
    const SampleCall call = one.call(*context);
    SCOPED_TRACE(call.text);
    const Tensor wanted = meaning_of(*context, "attention", call.operands, call.attributes)[0];
    for (const std::size_t scratch : {std::size_t{0}, kAttentionScratch})
      EXPECT_EQ(difference(wanted, attend(*context, call.operands, call.attributes, scratch),
                           context->ops.at("attention").tolerance(one.query)),
                "");
  }
}

// Windows of only the own token, of part of a page, of a page, across pages, steps and segments, and of all tokens.
TEST(CudaAttention, GivesTheMeaningInWindows) {
  const auto context = cuda_context();
  const KvLayout f16{.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 64};
  const KvLayout f32{.dtype = DType::f32, .block = 5, .heads = 1, .head_dim = 16};
  for (const int window : {1, 7, 16, 64, 100, 270, 800}) {
    const std::vector<AttentionCase> cases = {
        {f16, 3, DType::f32, {{1, 600}, {1, 20}, {1, 321}}, window},    // decoded
        {f16, 3, DType::f32, {{70, 70}, {40, 330}, {1, 270}}, window},  // a prompt, the rest of one, a token
        {f32, 1, DType::f32, {{90, 360}}, window},
    };
    for (const AttentionCase& one : cases) {
      const SampleCall call = one.call(*context);
      SCOPED_TRACE(call.text);
      const Tensor wanted = meaning_of(*context, "attention", call.operands, call.attributes)[0];
      const Tensor alone = attend(*context, call.operands, call.attributes, 0);
      EXPECT_EQ(difference(wanted, alone, context->ops.at("attention").tolerance(one.query)), "");
      const Tensor shared = attend(*context, call.operands, call.attributes, kAttentionScratch);
      EXPECT_EQ(difference(alone, shared, {}, true), "") << "shared among blocks";
    }
  }
}

TEST(CudaAttention, GivesTheBitsOfNoWindowWhereAWindowHoldsAll) {
  const auto context = cuda_context();
  const KvLayout kv{.dtype = DType::f16, .block = 16, .heads = 1, .head_dim = 64};
  for (const AttentionCase::Sequences& sequences :
       {AttentionCase::Sequences{{1, 300}, {1, 5}}, AttentionCase::Sequences{{40, 300}}})
    for (const char* provider : {"cuda", "cuda_mma"}) {
      const SampleCall call = AttentionCase{kv, 3, DType::f16, sequences}.call(*context);
      const Tensor wanted = attend(*context, call.operands, call.attributes, kAttentionScratch, provider);
      for (const std::int64_t window : {std::int64_t{300}, std::int64_t{301}, std::int64_t{1} << 40}) {
        const SampleCall windowed = AttentionCase{kv, 3, DType::f16, sequences, window}.call(*context);
        EXPECT_EQ(
            difference(wanted, attend(*context, windowed.operands, windowed.attributes, kAttentionScratch, provider),
                       {}, true),
            "")
            << provider << " " << window;
      }
    }
}

TEST(CudaAttention, FoldsSegmentsInOneOrderWhoeverSharesThem) {
  const auto context = cuda_context();
  for (const AttentionCase::Sequences& sequences :
       {AttentionCase::Sequences{{1, 700}, {1, 256}, {1, 257}}, AttentionCase::Sequences{{20, 600}, {1, 800}}}) {
    const AttentionCase one{{.dtype = DType::f16, .block = 16, .heads = 1, .head_dim = 64}, 3, DType::f32, sequences};
    const SampleCall call = one.call(*context);
    const Tensor alone = attend(*context, call.operands, call.attributes, 0);
    // Room for two segments a row, then for all.
    for (const std::size_t segments : {2, 4}) {
      const std::size_t scratch = segments * static_cast<std::size_t>(one.rows()) * 3 * 66 * sizeof(float);
      EXPECT_EQ(difference(alone, attend(*context, call.operands, call.attributes, scratch), {}, true), "");
    }
  }
}

// The last rows of a prompt, one at a time and by fives, with another sequence in the batch, compared with those of the
// whole prompt.
void expect_same_bits_beside_others(const Attribute& window) {
  const auto context = cuda_context();
  constexpr int kLength = 300, kBlock = 16, kPages = (kLength + kBlock - 1) / kBlock;
  const KvLayout kv{.dtype = DType::f16, .block = kBlock, .heads = 2, .head_dim = 64};
  const AttentionCase whole{kv, 3, DType::bf16, {{kLength, kLength}}, window};
  const SampleCall call = whole.call(*context);
  const Tensor wanted = attend(*context, call.operands, call.attributes, 0);
  const std::int64_t row_bytes = wanted.meta.bytes().number() / kLength;
  std::vector<std::int32_t> table(2 * kPages);
  for (int i = 0; i < 2 * kPages; ++i) table[static_cast<std::size_t>(i)] = i % kPages;
  for (const int rows : {1, 5}) {
    const std::vector<std::int32_t> starts = {0, rows, rows + 1}, lengths = {kLength - 10, 17};
    Tensor query = Tensor::empty(Meta::tensor(DType::bf16, {rows + 1, 6, 64}));
    std::memcpy(query.data(), call.operands[0].data() + (kLength - 10 - rows) * row_bytes,
                static_cast<std::size_t>(rows * row_bytes));
    std::memcpy(query.data() + rows * row_bytes, call.operands[0].data() + 16 * row_bytes,
                static_cast<std::size_t>(row_bytes));
    const std::vector<Tensor> operands = {query, call.operands[1], make_batch(starts, lengths, table)};
    const Tensor came = attend(*context, operands, call.attributes, kAttentionScratch);
    for (int row = 0; row < rows; ++row)
      EXPECT_EQ(bytes_of_row(came, row), bytes_of_row(wanted, kLength - 10 - rows + row)) << row << " of " << rows;
    EXPECT_EQ(bytes_of_row(came, rows), bytes_of_row(wanted, 16));
  }
}
TEST(CudaAttention, GivesARowTheSameBitsWhateverStandsBesideIt) { expect_same_bits_beside_others({}); }
TEST(CudaAttention, GivesARowTheSameBitsInAWindowWhateverStandsBesideIt) {
  for (const int window : {9, 33, 100}) expect_same_bits_beside_others(window);
}

TEST(CudaAttention, GivesTheSameBitsInPagesOfAnySize) {
  const auto context = cuda_context();
  constexpr int kLength = 75;
  std::vector<Tensor> results;
  for (const std::int64_t block : {16, 5, 1}) {
    const KvLayout kv{.dtype = DType::f16, .block = block, .heads = 1, .head_dim = 16};
    const SampleCall call = AttentionCase{kv, 2, DType::f32, {{4, kLength}}}.call(*context);
    // The same keys and values in any pages.
    auto* pages = reinterpret_cast<std::uint16_t*>(call.operands[1].data());
    for (std::int64_t token = 0; token < kLength; ++token)
      for (std::int64_t column = 0; column < 16; ++column) {
        const auto code = static_cast<std::uint16_t>(0x3000 + (token * 37 + column * 101) % 2048);
        pages[kv_key_offset(kv, token / block, 0) + column * block + token % block] = code;
        pages[kv_value_offset(kv, token / block, 0) + token % block * 16 + column] = code ^ 0x8000;
      }
    results.push_back(attend(*context, call.operands, call.attributes, 0));
  }
  EXPECT_EQ(difference(results[0], results[1], {}, true), "");
  EXPECT_EQ(difference(results[0], results[2], {}, true), "");
}

TEST(CudaAttention, ShowsNothingOfTokensThatARowDoesNotSee) {
  const auto context = cuda_context();
  constexpr int kLength = 70, kSeen = 66;
  const KvLayout kv{.dtype = DType::f32, .block = 16, .heads = 1, .head_dim = 16};
  const AttentionCase one{kv, 1, DType::f32, {{kLength - kSeen + 1, kLength}}};
  const SampleCall call = one.call(*context);
  const Tensor before = attend(*context, call.operands, call.attributes, 0);
  auto* pages = reinterpret_cast<float*>(call.operands[1].data());
  for (std::int64_t token = kSeen; token < 80; ++token)
    for (std::int64_t column = 0; column < 16; ++column)
      pages[kv_key_offset(kv, token / 16, 0) + column * 16 + token % 16] =
          pages[kv_value_offset(kv, token / 16, 0) + token % 16 * 16 + column] = NAN;
  const Tensor after = attend(*context, call.operands, call.attributes, 0);
  EXPECT_EQ(bytes_of_row(after, 0), bytes_of_row(before, 0)) << "row 0 shows what it does not see";
  for (std::int64_t row = 1; row < one.rows(); ++row)
    EXPECT_TRUE(std::isnan(after.as<float>()[row * 16])) << "row " << row << " sees a NaN";
}

TEST(CudaAttention, ShowsNothingOfTokensBeforeTheWindow) {
  const auto context = cuda_context();
  constexpr int kLength = 80, kSpoilt = 30, kWindow = 20;
  const KvLayout kv{.dtype = DType::f32, .block = 16, .heads = 1, .head_dim = 16};
  const SampleCall call = AttentionCase{kv, 1, DType::f32, {{kLength, kLength}}, kWindow}.call(*context);
  const Tensor before = attend(*context, call.operands, call.attributes, 0);
  auto* pages = reinterpret_cast<float*>(call.operands[1].data());
  for (std::int64_t column = 0; column < 16; ++column)
    pages[kv_key_offset(kv, kSpoilt / 16, 0) + column * 16 + kSpoilt % 16] =
        pages[kv_value_offset(kv, kSpoilt / 16, 0) + kSpoilt % 16 * 16 + column] = NAN;
  const Tensor after = attend(*context, call.operands, call.attributes, 0);
  for (std::int64_t row = 0; row < kLength; ++row) {
    if (row >= kSpoilt && row < kSpoilt + kWindow) {
      EXPECT_TRUE(std::isnan(after.as<float>()[row * 16])) << "row " << row << " sees a NaN";
    } else {
      EXPECT_EQ(bytes_of_row(after, row), bytes_of_row(before, row)) << row << " shows what it does not see";
    }
  }
}

TEST(CudaAttention, StaysWithinTheToleranceWhereverTheDevicesExponentialLies) {
  const auto context = cuda_context();
  const AttentionCase one{
      {.dtype = DType::f32, .block = 16, .heads = 1, .head_dim = 64}, 2, DType::f32, {{3, 520}, {1, 5}}};
  const SampleCall call = one.call(*context);
  const Tensor wanted = meaning_of(*context, "attention", call.operands, call.attributes)[0];
  const Tensor exact = attend(*context, call.operands, call.attributes, 0);
  for (const cuda::Approximation approximation :
       {cuda::Approximation::upwards, cuda::Approximation::downwards, cuda::Approximation::scattered}) {
    cuda::current_approximation = approximation;
    const Tensor came = attend(*context, call.operands, call.attributes, 0);
    cuda::current_approximation = cuda::Approximation::exact;
    EXPECT_EQ(difference(wanted, came, context->ops.at("attention").tolerance(DType::f32)), "");
    EXPECT_NE(difference(exact, came, {}, true), "") << "no approximation was moved";
  }
}

TEST(CudaAttention, SaysWhichHeadsItDoesNotTake) {
  const auto context = cuda_context();
  const auto refusal = [&](const KvLayout& kv) {
    const SampleCall call = AttentionCase{kv, 1, DType::f32, {{1, 4}}}.call(*context);
    return supports_of_cuda(*context, "attention", call.operands, call.attributes).reason();
  };
  EXPECT_NE(refusal({.dtype = DType::f16, .block = 16, .heads = 1, .head_dim = 12}).find("head_dim is 12"),
            std::string::npos);
  EXPECT_NE(refusal({.dtype = DType::f32, .block = 16, .heads = 1, .head_dim = 256}).find("at most 128"),
            std::string::npos);
}

// The bytes of K and of V: a decoded token reads them once, a prompt once for each 32 rows, in whole sectors.
TEST(CudaAttention, ReadsKAndVOnceATileInWholeSectors) {
  const auto context = cuda_context();
  constexpr std::int64_t kLength = 256, kHeadDim = 64;
  const KvLayout kv{.dtype = DType::f16, .block = 16, .heads = 1, .head_dim = kHeadDim};
  // Rows of a tile see up to the last of its tokens.
  const std::int64_t tiles_of_prompt = kLength / 32,
                     tokens_of_prompt = 32 * tiles_of_prompt * (tiles_of_prompt + 1) / 2;
  for (const auto& [rows, tokens] : {std::pair<int, std::int64_t>{1, kLength}, {kLength, tokens_of_prompt}}) {
    const SampleCall made = AttentionCase{kv, 1, DType::bf16, {{rows, kLength}}}.call(*context);
    const std::vector<cuda::AccessTraffic> most = attention_traffic(*context, made);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(most[i].bytes, tokens * kHeadDim * 2) << most[i].place;
      EXPECT_EQ(most[i].sectors * 32, most[i].bytes) << most[i].place;
    }
  }
}

// A decoded token reads the steps of 64 tokens that its window reaches into, however long the sequence is.
TEST(CudaAttention, ReadsNothingBeforeTheStepsOfTheWindow) {
  const auto context = cuda_context();
  const KvLayout kv{.dtype = DType::f16, .block = 16, .heads = 1, .head_dim = 64};
  for (const int length : {512, 1024}) {
    const SampleCall made = AttentionCase{kv, 1, DType::bf16, {{1, length}}, 100}.call(*context);
    const std::vector<cuda::AccessTraffic> most = attention_traffic(*context, made);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(most[i].bytes, 128 * 64 * 2) << most[i].place;
  }
}

}  // namespace weft::attention_test
