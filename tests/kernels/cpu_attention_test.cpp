#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/cpu/lib/attention_kernels.h"
#include "tensor/batch.h"
#include "tests/kernels/cpu_attention_support.h"

namespace weft::cpu_attention_test {

constexpr DType kCodeTypes[] = {DType::f8e4m3, DType::q8_0};

TEST(CpuAttention, AgreesWithDoublePrecisionForAllTypesAndHeadShapes) {
  for (const Heads& heads : {Heads{9, 3, 64}, {4, 4, 8}, {8, 1, 72}, {2, 1, 128}, {5, 1, 16}}) {
    for (DType pages : kFloatTypes) {
      for (DType dtype : kFloatTypes) {
        if (heads.query != 9 && dtype != DType::f32 && pages != DType::f32) continue;
        SCOPED_TRACE(fmt::format("{} of {} heads of {}, {} in {} pages", heads.query, heads.kv, heads.dim,
                                 dtype_text(dtype), dtype_text(pages)));
        const Sequence sequence(heads, 135, dtype, 1);
        const std::vector<float> exact = exact_output(sequence, pages, 1 / std::sqrt(static_cast<double>(heads.dim)));
        const double tolerance = dtype == DType::f32 ? 2e-6 : dtype == DType::f16 ? 1e-3 : 8e-3;
        for_each_machine([&](RowKernels& kernels) {
          const std::vector<float> output = whole_output(kernels, sequence, pages, 16);
          ASSERT_EQ(output.size(), exact.size());
          for (std::size_t i = 0; i < output.size(); ++i)
            ASSERT_NEAR(output[i], exact[i], tolerance * (1 + std::fabs(exact[i]))) << "at " << i;
        });
      }
    }
  }
}

// One to eight query heads of a KV head, heads of one and of several blocks of codes and of half a vector of bytes.
TEST(CpuAttention, AgreesWithDoublePrecisionInPagesOfCodes) {
  for (const Heads& heads :
       {Heads{9, 3, 64}, {1, 1, 32}, {4, 2, 96}, {8, 1, 128}, {5, 1, 32}, {2, 1, 24}, {4, 1, 72}}) {
    for (DType pages : kCodeTypes) {
      if (heads.dim % 32 != 0 && pages == DType::q8_0) continue;
      SCOPED_TRACE(
          fmt::format("{} of {} heads of {} in {} pages", heads.query, heads.kv, heads.dim, dtype_text(pages)));
      Sequence sequence(heads, 300, DType::f32, 1);
      for (std::size_t i = 0; i < sequence.key.size(); i += 7) sequence.key[i] *= 1e-3F;  // subnormal f8e4m3
      for (std::size_t i = 0; i < sequence.value.size(); i += 5) sequence.value[i] *= 1e-3F;
      const std::vector<float> exact = exact_output(sequence, pages, 1 / std::sqrt(static_cast<double>(heads.dim)));
      for_each_machine([&](RowKernels& kernels) {
        const std::vector<float> output = whole_output(kernels, sequence, pages, 16);
        ASSERT_EQ(output.size(), exact.size());
        for (std::size_t i = 0; i < output.size(); ++i)
          ASSERT_NEAR(output[i], exact[i], 2e-6 * (1 + std::fabs(exact[i]))) << "at " << i;
      });
    }
  }
}

TEST(CpuAttention, GivesTheSameBitsForEveryBlockSizeAndTable) {
  for_each_machine([](RowKernels& kernels) {
    for (DType pages : {DType::f32, DType::f16, DType::f8e4m3, DType::q8_0}) {
      const Sequence sequence({6, 2, pages == DType::q8_0 ? 64 : 40}, 270, DType::f32, 3);
      const std::vector<float> wanted = whole_output(kernels, sequence, pages, 16);
      for (std::int64_t block : {1, 5, 32, 48})
        expect_same_bits(wanted, whole_output(kernels, sequence, pages, block), fmt::format("block {}", block));
    }
  });
}

TEST(CpuAttention, GivesTheSameBitsWholeInChunksTokenByTokenAndBesideAnother) {
  for_each_machine([](RowKernels& kernels) {
    for (const auto& [pages, block] : {std::pair(DType::f16, 1),
                                       {DType::f16, 16},
                                       {DType::f16, 32},
                                       {DType::f8e4m3, 5},
                                       {DType::f8e4m3, 16},
                                       {DType::q8_0, 5},
                                       {DType::q8_0, 16}}) {
      const Heads heads{6, 2, pages == DType::q8_0 ? 32 : 24};
      const Sequence sequence(heads, 150, DType::f32, 3), other(heads, 190, DType::f32, 9);
      const std::vector<float> wanted = whole_output(kernels, sequence, pages, 16);
      const std::vector<float> wanted_other = whole_output(kernels, other, pages, 16);
      Cache cache(sequence.heads, pages, block, 4 * (190 / block + 1));
      Session chunks(kernels, cache, {&sequence});
      for (std::int64_t count : {7, 64, 1, 50, 28}) chunks.step({count});
      expect_same_bits(wanted, chunks.output(0), "chunks");
      Session tokens(kernels, cache, {&sequence});
      for (std::int64_t i = 0; i < sequence.length; ++i) tokens.step({1});
      expect_same_bits(wanted, tokens.output(0), "token by token");
      Session both(kernels, cache, {&sequence, &other});
      both.step({100, 20});
      both.step({0, 70});
      for (int i = 0; i < 50; ++i) both.step({1, 2});
      expect_same_bits(wanted, both.output(0), "beside another");
      expect_same_bits(wanted_other, both.output(1), "the other");
    }
  });
}

// Few KV heads and a long sequence: threads share its segments. In a larger batch, or in a chunk of rows, they may not.
TEST(CpuAttention, GivesTheSameBitsWhicheverThreadAttendsASegment) {
  constexpr std::int64_t kLength = 2 * cpu::kAttentionSegment + 150;
  for (DType pages : {DType::f16, DType::f8e4m3, DType::q8_0}) {
    const Heads heads{6, 2, pages == DType::q8_0 ? 32 : 24};
    const Sequence sequence(heads, kLength, DType::f32, 3), other(heads, 90, DType::f32, 9);
    const std::vector<float> exact = exact_output(sequence, pages, 1 / std::sqrt(static_cast<double>(heads.dim)));
    for_each_machine([&](RowKernels& kernels) {
      const std::vector<float> wanted = whole_output(kernels, sequence, pages, 16);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(wanted[i], exact[i], 2e-6 * (1 + std::fabs(exact[i])));
      Cache cache(sequence.heads, pages, 16, 3 * (kLength / 16 + 1));
      Session alone(kernels, cache, {&sequence});
      alone.step({kLength - 80});
      for (const std::int64_t tokens : {15, 1, 1, 16, 14, 33}) alone.step({tokens});
      expect_same_bits(wanted, alone.output(0), "alone");
      Session both(kernels, cache, {&sequence, &other});
      both.step({cpu::kAttentionSegment + 1, 40});
      for (int i = 0; i < 50; ++i) both.step({1, 1});
      both.step({kLength - cpu::kAttentionSegment - 51, 0});
      expect_same_bits(wanted, both.output(0), "beside another");
    });
  }
}

TEST(CpuAttention, GivesTheCodesOfTheTwoOpsWhereItQuantizes) {
  const OpTable ops = make_op_table();
  const Tensor fp8_scale = tensor_of(DType::f32, {1}, {0.02F}), global_scale = tensor_of(DType::f32, {1}, {100});
  for (const Heads& heads : {Heads{9, 3, 64}, {8, 1, 48}, {5, 1, 16}, {7, 7, 32}}) {
    for (DType dtype : kFloatTypes) {
      SCOPED_TRACE(fmt::format("{} of {} heads of {}, {}", heads.query, heads.kv, heads.dim, dtype_text(dtype)));
      const Sequence sequence(heads, 350, dtype, 3), other(heads, 40, dtype, 9);
      for_each_machine([&](RowKernels& kernels) {
        for (const Attribute& window : {Attribute(), Attribute(20)}) {
          Cache cache(heads, DType::f16, 16, 32);
          Session session(kernels, cache, {&sequence, &other}, window);
          for (const std::vector<std::int64_t>& counts : {std::vector<std::int64_t>{300, 1}, {1, 30}, {49, 0}}) {
            session.step(counts);
            session.expect_same_codes(ops, "static_scaled_fp8_quant", fp8_scale, {});
            session.expect_same_codes(ops, "scaled_fp4_quant", global_scale, {{"swizzled_scales", false}});
            session.expect_same_codes(ops, "scaled_fp4_quant", global_scale, {{"swizzled_scales", true}});
          }
        }
      });
    }
  }
}

// Windows of only the own token, of part of a page, of a page, across pages, steps and segments, and of all.
TEST(CpuAttention, SeesTheLastTokensOfAWindow) {
  constexpr std::int64_t kLength = 2 * cpu::kAttentionSegment + 90;
  for (const Heads& heads : {Heads{6, 2, 24}, {3, 3, 16}, {8, 1, 8}}) {
    const Sequence sequence(heads, kLength, DType::f32, 3), other(heads, 90, DType::f32, 9);
    const double scale = 1 / std::sqrt(static_cast<double>(heads.dim));
    for (const std::int64_t window : {1, 7, 16, 128, 230, 300, 601}) {
      SCOPED_TRACE(fmt::format("{} of {} heads, window {}", heads.query, heads.kv, window));
      const std::vector<float> exact = exact_output(sequence, DType::f16, scale, window);
      for_each_machine([&](RowKernels& kernels) {
        const std::vector<float> wanted = whole_output(kernels, sequence, DType::f16, 16, window);
        for (std::size_t i = 0; i < wanted.size(); ++i)
          ASSERT_NEAR(wanted[i], exact[i], 2e-6 * (1 + std::fabs(exact[i]))) << "at " << i;
        expect_same_bits(wanted, whole_output(kernels, sequence, DType::f16, 5, window), "pages of 5");
        Cache cache(heads, DType::f16, 16, 3 * (kLength / 16 + 1));
        Session chunks(kernels, cache, {&sequence}, window);
        chunks.step({kLength - 120});
        for (const std::int64_t tokens : {15, 1, 1, 70, 1, 32}) chunks.step({tokens});
        expect_same_bits(wanted, chunks.output(0), "in chunks and tokens");
        Session both(kernels, cache, {&sequence, &other}, window);
        both.step({cpu::kAttentionSegment + 30, 40});
        for (int i = 0; i < 50; ++i) both.step({1, 1});
        both.step({kLength - cpu::kAttentionSegment - 80, 0});
        expect_same_bits(wanted, both.output(0), "beside another");
      });
    }
  }
}

TEST(CpuAttention, GivesTheBitsOfNoWindowWhereAWindowHoldsAll) {
  for_each_machine([](RowKernels& kernels) {
    const Sequence sequence({6, 2, 40}, 290, DType::f32, 3);
    const std::vector<float> wanted = whole_output(kernels, sequence, DType::f16, 16);
    for (const std::int64_t window : {std::int64_t{290}, std::int64_t{291}, std::numeric_limits<std::int64_t>::max()})
      expect_same_bits(wanted, whole_output(kernels, sequence, DType::f16, 16, window), fmt::format("{}", window));
  });
}

// A column for each distance, fewer than there are, and one for all.
TEST(CpuAttention, AddsABiasByHeadAndDistance) {
  constexpr std::int64_t kLength = cpu::kAttentionSegment + 90;
  for (const Heads& heads : {Heads{6, 2, 24}, {3, 3, 16}, {8, 1, 8}}) {
    const Sequence sequence(heads, kLength, DType::f32, 3), other(heads, 90, DType::f32, 9);
    const double scale = 1 / std::sqrt(static_cast<double>(heads.dim));
    for (const auto& [columns, window] :
         {std::pair<std::int64_t, std::int64_t>{2 * kLength - 1, 1 << 20}, {61, 1 << 20}, {1, 1 << 20}, {257, 150}}) {
      SCOPED_TRACE(fmt::format("{} of {} heads, {} distances, window {}", heads.query, heads.kv, columns, window));
      const Tensor bias = random_bias(heads, columns);
      const std::vector<float> exact = exact_output(sequence, DType::f16, scale, window, &bias);
      for_each_machine([&](RowKernels& kernels) {
        const std::vector<float> wanted = whole_output(kernels, sequence, DType::f16, 16, window, bias);
        for (std::size_t i = 0; i < wanted.size(); ++i)
          ASSERT_NEAR(wanted[i], exact[i], 3e-6 * (1 + std::fabs(exact[i]))) << "at " << i;
        expect_same_bits(wanted, whole_output(kernels, sequence, DType::f16, 5, window, bias), "pages of 5");
        Cache cache(heads, DType::f16, 16, 3 * (kLength / 16 + 1));
        Session chunks(kernels, cache, {&sequence}, window, bias);
        chunks.step({kLength - 120});
        for (const std::int64_t tokens : {15, 1, 1, 70, 1, 32}) chunks.step({tokens});
        expect_same_bits(wanted, chunks.output(0), "in chunks and tokens");
        Session both(kernels, cache, {&sequence, &other}, window, bias);
        both.step({cpu::kAttentionSegment + 30, 40});
        for (int i = 0; i < 50; ++i) both.step({1, 1});
        both.step({kLength - cpu::kAttentionSegment - 80, 0});
        expect_same_bits(wanted, both.output(0), "beside another");
      });
    }
  }
}

TEST(CpuAttention, KeepsANotANumberFromRowsWhoseWindowsLieBehindIt) {
  constexpr std::int64_t kToken = 21, kWindow = 9;
  const Heads heads{6, 2, 16};
  const Sequence clean(heads, 60, DType::f32, 3);
  Sequence broken = clean;
  broken.value[kToken * heads.kv * heads.dim] = NAN;
  broken.key[(kToken * heads.kv + 1) * heads.dim] = NAN;
  for_each_machine([&](RowKernels& kernels) {
    const std::vector<float> wanted = whole_output(kernels, clean, DType::f32, 16, kWindow);
    const std::vector<float> came = whole_output(kernels, broken, DType::f32, 16, kWindow);
    const std::ptrdiff_t width = heads.query * heads.dim;
    for (std::ptrdiff_t token = 0; token < clean.length; ++token) {
      if (token >= kToken && token < kToken + kWindow) {
        EXPECT_TRUE(std::isnan(came[static_cast<std::size_t>(token * width)])) << token;
      } else {
        expect_same_bits({wanted.begin() + token * width, wanted.begin() + (token + 1) * width},
                         {came.begin() + token * width, came.begin() + (token + 1) * width},
                         fmt::format("token {}", token));
      }
    }
  });
}

TEST(CpuAttention, IgnoresWhatPagesHoldBeyondTheTokensSeen) {
  for_each_machine([](RowKernels& kernels) {
    for (const auto& [pages, block] :
         {std::pair(DType::f16, 1), {DType::f16, 16}, {DType::f16, 32}, {DType::f8e4m3, 16}, {DType::f8e4m3, 5}}) {
      const Sequence sequence({6, 2, 24}, 141, DType::f32, 3);
      const std::vector<float> wanted = whole_output(kernels, sequence, pages, block);
      Cache cache(sequence.heads, pages, block, 2 * (sequence.length / block + 1));
      cache.spoil();
      Session session(kernels, cache, {&sequence});
      session.step({sequence.length});
      expect_same_bits(wanted, session.output(0), fmt::format("block {}", block));
    }
  });
}

TEST(CpuAttention, KeepsANotANumberFromRowsThatDoNotSeeIt) {
  for_each_machine([](RowKernels& kernels) {
    for (DType pages : {DType::f32, DType::f8e4m3, DType::q8_0}) {
      const Heads heads{6, 2, 32};
      const Sequence clean(heads, 40, DType::f32, 3);
      Sequence broken = clean;
      constexpr std::int64_t kToken = 21;
      broken.value[kToken * heads.kv * heads.dim] = NAN;
      // A block of q8_0 with an infinity holds NaN alone.
      broken.key[(kToken * heads.kv + 1) * heads.dim] =
          pages == DType::q8_0 ? std::numeric_limits<float>::infinity() : NAN;
      std::vector<float> wanted = whole_output(kernels, clean, pages, 16);
      const std::vector<float> came = whole_output(kernels, broken, pages, 16);
      const auto before = static_cast<std::ptrdiff_t>(kToken * heads.query * heads.dim);
      wanted.resize(static_cast<std::size_t>(before));
      expect_same_bits(wanted, {came.begin(), came.begin() + before}, "rows before the token");
      for (std::int64_t token = kToken; token < clean.length; ++token) {
        const std::int64_t row = token * heads.query * heads.dim;
        EXPECT_TRUE(std::isnan(came[static_cast<std::size_t>(row)])) << token;
        EXPECT_TRUE(std::isnan(came[static_cast<std::size_t>(row + (heads.query - 1) * heads.dim)])) << token;
      }
    }
  });
}

TEST(CpuAttention, RefusesWithAReason) {
  const RowKernels kernels("baseline", 1);
  const auto reason = [&](std::int64_t query_heads, const KvLayout& layout) {
    const Tensor query = Tensor::empty(Meta::tensor(DType::f32, {1, query_heads, layout.head_dim}));
    const Tensor kv = Tensor::empty(Meta::pages(layout), 1);
    return kernels
        .supports("attention", {query, kv, make_batch({{1, 1}}, 16), std::nullopt, std::nullopt},
                  {{"scale", 1.0}, {"window", {}}, {"softcap", 0.0}, {"causal", true}}, {query.meta})
        .reason();
  };
  EXPECT_EQ(reason(2, {.dtype = DType::f16, .block = 16, .heads = 1, .head_dim = 20}),
            "head_dim is 20; multiples of 8 are supported");
  EXPECT_EQ(reason(3, {.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 16}),
            "3 query heads do not divide among 2 KV heads");
  EXPECT_EQ(reason(2, {.dtype = DType::f8e5m2, .block = 16, .heads = 2, .head_dim = 16}),
            "KV pages are f8e5m2; f32, f16, bf16, f8e4m3 and q8_0 are supported");
}

}  // namespace weft::cpu_attention_test
