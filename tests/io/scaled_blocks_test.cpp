#include "io/scaled_blocks.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "tensor/convert.h"
#include "tests/io/checkpoint_parts.h"
#include "tests/io/gguf_types.h"
#include "tests/thrown_message.h"

namespace weft::scaled_blocks_test {

using checkpoint_parts::Folder;
using testing::raw;

constexpr std::int64_t kRows = 3, kColumns = 128, kBlockBytes = 36;

// Blocks with all codes and many scales; one scale is 0x7f, which means 0.
std::string blocks(std::int64_t matrices) {
  std::string bytes;
  for (std::int64_t i = 0; i < matrices * kRows * kColumns / 64 * kBlockBytes; ++i) {
    const bool is_scale = i % kBlockBytes < 4;
    bytes += static_cast<char>(is_scale ? (i * 11 + 5) % 0xff : (i * 37 + i / 7) % 256);
  }
  bytes[3] = 0x7f;
  return bytes;
}

std::string numbers(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) bytes += raw(value);
  return bytes;
}

// A file with the stack or matrix "a.weight", and its factors.
Checkpoint open(const Folder& folder, std::int64_t matrices, const std::vector<float>& factors,
                std::string bytes = "") {
  testing::GgufBytes file = testing::tiny_llama_gguf();
  std::vector<std::uint64_t> shape{kColumns, kRows};
  if (matrices > 1) shape.push_back(static_cast<std::uint64_t>(matrices));
  file.tensor("a.weight", shape, testing::ggml_id(DType::nvfp4).value(), bytes.empty() ? blocks(matrices) : bytes);
  if (!factors.empty()) file.tensor("a.scale", {factors.size()}, testing::kGgmlF32, numbers(factors));
  file.tensor("b.weight", {kColumns}, testing::kGgmlF32, std::string(kColumns * 4, '\0'));
  file.tensor("b.scale", {1}, testing::kGgmlF32, numbers({1}));
  checkpoint_parts::write(folder / "m.gguf", file.bytes());
  return Checkpoint::open(folder / "m.gguf");
}

TEST(ScaledBlocks, AreBlocksTimesTheirFactors) {
  for (const std::vector<float>& factors : {std::vector<float>{0.37f}, std::vector<float>{0.37f, -1.5f}}) {
    const Folder folder;
    const auto matrices = static_cast<std::int64_t>(factors.size());
    const Checkpoint checkpoint = open(folder, matrices, factors);
    EXPECT_EQ(factors_of_blocks(checkpoint, "a.weight"), "a.scale");
    const Tensor scaled = scaled_blocks(checkpoint, "a.weight");
    EXPECT_EQ(scaled.meta, scaled_blocks_meta(checkpoint, "a.weight"));
    const std::byte* plain = checkpoint.tensor("a.weight").data();
    const std::int64_t count = matrices * kRows * kColumns;
    for (std::int64_t i = 0; i < count; ++i)
      ASSERT_FLOAT_EQ(load_float(DType::e2m1g16, scaled.data(), i),
                      load_float(DType::nvfp4, plain, i) * factors[static_cast<std::size_t>(i / (count / matrices))])
          << i;
  }
}

TEST(ScaledBlocks, AreThoseOfOneTypeAlone) {
  const Folder folder;
  EXPECT_EQ(factors_of_blocks(open(folder, 1, {}), "a.weight"), "");
  EXPECT_EQ(factors_of_blocks(open(folder, 1, {1}), "b.weight"), "");
  EXPECT_EQ(factors_of_blocks(open(folder, 1, {1}), "c.weight"), "");
}

TEST(ScaledBlocks, NameFactorsAndScalesThatAreNoNumbers) {
  const auto refusal = [](const std::vector<float>& factors, const std::string& bytes = "") {
    const Folder folder;
    const Checkpoint checkpoint = open(folder, 2, factors, bytes);
    return message_of([&] { scaled_blocks(checkpoint, "a.weight"); });
  };
  EXPECT_NE(refusal({1}).find("a.scale must be f32[2], but is f32[1]"), std::string::npos) << refusal({1});
  EXPECT_NE(refusal({1, NAN}).find("a.scale must be finite"), std::string::npos);
  std::string bytes = blocks(2);
  bytes[kBlockBytes + 1] = static_cast<char>(0x93);
  EXPECT_EQ(refusal({1, 1}, bytes), "") << "the sign is not read";
  bytes[kBlockBytes + 1] = static_cast<char>(0xff);
  EXPECT_NE(refusal({1, 1}, bytes).find("block 1 has the code 255"), std::string::npos);
}

}  // namespace weft::scaled_blocks_test
