// The packings of the CPU.

#include <cstring>

#include <gtest/gtest.h>

#include "tests/kernels/cpu_linear_support.h"

namespace weft::cpu_packing_test {

// The first `columns` rows of `first`, and of `second` the rows after them.
Tensor joined(const Tensor& first, std::int64_t columns, const Tensor& second) {
  Tensor result = Tensor::empty(first.meta);
  const std::int64_t bytes = bytes_of(first.meta.dtype, columns * first.meta.shape[1].number());
  std::memcpy(result.data(), second.data(), static_cast<std::size_t>(second.meta.bytes().number()));
  std::memcpy(result.data(), first.data(), static_cast<std::size_t>(bytes));
  return result;
}

// A byte of a panel belongs to one column. Where it changes with the rows that are missing, it is zero without them.
TEST(CpuPacking, PadsTheLastPanelWithZeros) {
  for (const DType dtype : weight_types()) {
    const std::int64_t depth = whole_blocks(dtype, is_block(dtype) ? 96 : 37);
    const LinearFamily family("", 1);
    const Tensor whole = random_weight(dtype, 32, depth, 5), other = random_weight(dtype, 32, depth, 6);
    if (family.pack(whole).meta.packed.empty()) continue;
    for (const std::int64_t columns : {1, 3, 4, 18, 31}) {
      SCOPED_TRACE(whole.meta.text() + ", columns: " + std::to_string(columns));
      Tensor some = joined(whole, columns, other);
      const Tensor panel = family.pack(whole), changed = family.pack(some);
      some.meta.shape[0] = Dim(columns);
      const Tensor padded = family.pack(some);
      ASSERT_EQ(padded.storage->bytes(), panel.storage->bytes());
      for (std::int64_t i = 0; i < panel.storage->bytes(); ++i) {
        if (panel.data()[i] != changed.data()[i]) {
          ASSERT_EQ(padded.data()[i], std::byte{0}) << "byte " << i;
        } else if (padded.data()[i] != std::byte{0}) {
          ASSERT_EQ(padded.data()[i], panel.data()[i]) << "byte " << i;
        }
      }
    }
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

}  // namespace weft::cpu_packing_test
