// embedding and the packings on the CPU, which share the weights of linear.

#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/convert.h"
#include "tests/kernels/cpu_linear_support.h"

namespace weft::cpu_embedding_test {

TEST(CpuEmbedding, ConvertsRowsOfPlainAndPackedWeights) {
  for (const DType dtype : weight_types()) {
    const std::int64_t depth = whole_blocks(dtype, 96);
    const Tensor weight = random_weight(dtype, 70, depth, 18);
    const std::vector<std::int64_t> rows = {69, 0, 31, 32, 33, 0};
    for (const DType result : float_types()) {
      for (const DType ids_type : {DType::i64, DType::i32}) {
        Tensor ids = Tensor::empty(Meta::tensor(ids_type, {static_cast<std::int64_t>(rows.size())}));
        for (std::size_t i = 0; i < rows.size(); ++i)
          store_integer(ids_type, ids.data(), static_cast<std::int64_t>(i), rows[i]);
        LinearFamily family("", 2);
        for (const Tensor& form : {weight, family.pack(weight)}) {
          SCOPED_TRACE(form.meta.text() + " to " + std::string(dtype_text(result)));
          const Meta meta = Meta::tensor(result, {ids.meta.shape[0], depth});
          const Tensor found = family.call("embedding", {ids, form}, {{"dtype", result}}, meta);
          for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::int64_t bytes = bytes_of(result, depth);
            std::vector<std::byte> wanted(static_cast<std::size_t>(bytes));
            convert_row(dtype, weight.data() + rows[i] * bytes_of(dtype, depth), result, wanted.data(), depth);
            ASSERT_EQ(std::memcmp(found.data() + static_cast<std::int64_t>(i) * bytes, wanted.data(), wanted.size()), 0)
                << "row " << rows[i];
          }
        }
      }
    }
  }
}

TEST(CpuEmbedding, TakesAnyDepthOfFloatWeights) {
  for (const DType dtype : float_types()) {
    const Tensor weight = random_weight(dtype, 40, 37, 19);
    Tensor ids = Tensor::empty(Meta::tensor(DType::i32, {1}));
    ids.as<std::int32_t>()[0] = 33;
    LinearFamily family("", 1);
    const Tensor found =
        family.call("embedding", {ids, family.pack(weight)}, {{"dtype", dtype}}, Meta::tensor(dtype, {1, 37}));
    const std::int64_t bytes = bytes_of(dtype, 37);
    EXPECT_EQ(std::memcmp(found.data(), weight.data() + 33 * bytes, static_cast<std::size_t>(bytes)), 0);
  }
}

TEST(CpuEmbedding, RejectsAnIdOutsideTheTable) {
  LinearFamily family("", 1);
  const Tensor weight = random_weight(DType::f32, 4, 8, 20);
  Tensor ids = Tensor::empty(Meta::tensor(DType::i64, {1}));
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{4}}) {
    ids.as<std::int64_t>()[0] = id;
    EXPECT_THROW(family.call("embedding", {ids, weight}, {{"dtype", DType::f32}}, Meta::tensor(DType::f32, {1, 8})),
                 UserError);
  }
}

TEST(CpuPacking, FillsWholeCacheLines) {
  LinearFamily family("", 1);
  const auto bytes = [&](const char* name, DType dtype, std::int64_t columns, std::int64_t depth) {
    return family.registry().find_packing(name)->bytes(Meta::tensor(dtype, {columns, depth}));
  };
  EXPECT_EQ(bytes("q4x32", DType::q4_0, 32, 64), 2 * 576);
  EXPECT_EQ(bytes("q4x32", DType::q4_1, 33, 32), 2 * 640);
  EXPECT_EQ(bytes("q8x32", DType::q8_0, 1, 32), 1088);
  EXPECT_EQ(bytes("f32x32", DType::f32, 32, 3), 3 * 128);
  EXPECT_EQ(bytes("bf16x32", DType::bf16, 32, 3), 2 * 128);
  EXPECT_EQ(bytes("f16x32", DType::f16, 32, 3), 3 * 64);
  EXPECT_EQ(bytes("q6kx32", DType::q6_k, 32, 512), 2 * 32 * 210);
}

TEST(CpuPacking, TakesHardlyMoreMemoryThanTheFile) {
  LinearFamily family("", 1);
  constexpr std::int64_t kColumns = 64, kDepth = 512;
  int packed = 0;
  for (const DType dtype : block_types()) {
    const Meta plain = Meta::tensor(dtype, {kColumns, kDepth});
    for (const auto& [name, packing] : family.registry().packings()) {
      if (!packing.accepts(plain, describe_cpu("", 1))) continue;
      ++packed;
      EXPECT_EQ(packing.bytes(plain) % 64, 0) << name;
      EXPECT_LE(static_cast<double>(packing.bytes(plain)), 1.07 * static_cast<double>(plain.bytes().number()))
          << name << " of " << dtype_text(dtype);
    }
  }
  EXPECT_EQ(packed, 22);
}

// A group of a folder has codes of 4 bits and a scale of 16 bits, in NF4 of 32, in NVFP4 of 8; zero points are left
// out.
TEST(CpuPacking, TakesHardlyMoreMemoryThanTheGroupsOfAFolder) {
  LinearFamily family("", 1);
  const auto expect = [&](DType dtype, std::int64_t group, std::int64_t scale_bytes, double most = 1.07) {
    constexpr std::int64_t kColumns = 64, kDepth = 1024;
    const Packing* packing =
        own_packing(family.registry(), "cpu", Meta::tensor(dtype, {kColumns, kDepth}), describe_cpu("", 1));
    ASSERT_NE(packing, nullptr) << dtype_text(dtype);
    const std::int64_t bytes = packing->bytes(Meta::tensor(dtype, {kColumns, kDepth}));
    const std::int64_t in_folder = kColumns * (kDepth / group) * (group / 2 + scale_bytes);
    EXPECT_LE(static_cast<double>(bytes), most * static_cast<double>(in_folder)) << dtype_text(dtype) << " " << group;
  };
  expect(DType::i4g32, 32, 2);
  expect(DType::i4g64, 64, 2);
  expect(DType::i4g128, 128, 2);
  expect(DType::i4g128, 1024, 2);
  expect(DType::nf4g64, 64, 4);
  expect(DType::e2m1g16, 16, 1, 1.12);
}

// Scales of blocks of rows and columns, or of rows, are few.
TEST(CpuPacking, TakesLittleMoreMemoryThanCodesOfEightBits) {
  LinearFamily family("", 1);
  constexpr std::int64_t kColumns = 64, kDepth = 1024;
  const std::pair<DType, double> most[] = {{DType::i8g32, 1.13}, {DType::e4m3g32, 1.13}, {DType::e4m3g128, 1.04}};
  for (const auto& [dtype, ratio] : most) {
    const Meta plain = Meta::tensor(dtype, {kColumns, kDepth});
    const Packing* packing = own_packing(family.registry(), "cpu", plain, describe_cpu("", 1));
    ASSERT_NE(packing, nullptr) << dtype_text(dtype);
    EXPECT_LE(static_cast<double>(packing->bytes(plain)), ratio * kColumns * kDepth) << dtype_text(dtype);
  }
}

TEST(CpuPacking, AcceptsItsOwnTypeOnTheCpuOnly) {
  LinearFamily family("", 1);
  const Packing& packing = *family.registry().find_packing("q4x32");
  const DeviceDescription cpu = describe_cpu("", 1);
  EXPECT_TRUE(packing.accepts(Meta::tensor(DType::q4_0, {64, 64}), cpu));
  EXPECT_EQ(packing.accepts(Meta::tensor(DType::q8_0, {64, 64}), cpu).reason(), "q8_0 is packed as q8x32");
  EXPECT_EQ(packing.accepts(Meta::tensor(DType::q4_0, {64}), cpu).reason(),
            "weight is neither a matrix nor a stack of them");
  EXPECT_EQ(packing.accepts(Meta::tensor(DType::q4_0, {Dim::symbol("s0"), 64}), cpu).reason(),
            "weight has a symbolic extent: q4_0[s0, 64]");
  DeviceDescription cuda = cpu;
  cuda.id.type = DeviceType::cuda;
  EXPECT_FALSE(packing.accepts(Meta::tensor(DType::q4_0, {64, 64}), cuda));
}

}  // namespace weft::cpu_embedding_test
