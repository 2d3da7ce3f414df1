#include "io/mxfp4_weight.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "io/safetensors_writer.h"
#include "tensor/block_format.h"
#include "tests/base/temporary_folder.h"
#include "tests/io/tiny_config.h"
#include "tests/thrown_message.h"

namespace weft::mxfp4_weight_test {

constexpr float kValues[] = {0, .5F, 1, 1.5F, 2, 3, 4, 6, -0.F, -.5F, -1, -1.5F, -2, -3, -4, -6};
constexpr std::int64_t kExperts = 2, kRows = 3, kGroups = 2;

class Mxfp4Weight : public ::testing::Test {
 protected:
  Mxfp4Weight() { config_.scheme = QuantizationScheme::mxfp4; }

  Checkpoint open(const Shape& blocks, const Shape& scales, DType exponent = DType::u8) {
    const std::string path = folder_ / "model";
    std::filesystem::create_directories(path);
    std::ofstream(path + "/config.json") << tiny_config::tiny_json().dump();
    codes_ = Tensor::empty(Meta::tensor(DType::u8, blocks));
    exponents_ = Tensor::empty(Meta::tensor(exponent, scales));
    for (std::int64_t i = 0; i < codes_.meta.bytes().number(); ++i)
      codes_.data()[i] = static_cast<std::byte>(37 * i + 11);
    for (std::int64_t i = 0; i < exponents_.meta.bytes().number(); ++i)
      exponents_.data()[i] = static_cast<std::byte>(120 + i);
    const std::vector<NamedTensor> tensors{{"x_blocks", codes_}, {"x_scales", exponents_}};
    write_safetensors(path + "/model.safetensors", tensors);
    return Checkpoint::open(path);
  }

  const TemporaryFolder folder_;
  QuantizationConfig config_;
  Tensor codes_, exponents_;
};

TEST_F(Mxfp4Weight, IsConvertedToBlocksOfTheSameValues) {
  const Checkpoint checkpoint = open({kExperts, kRows, kGroups, 16}, {kExperts, kRows, kGroups});
  check_mxfp4_stack(checkpoint, config_, "x", {kExperts, kRows, kGroups * 32});
  const Tensor stack = mxfp4_stack(checkpoint, config_, "x");
  EXPECT_EQ(stack.meta.text(), "mxfp4[2, 3, 64]");
  EXPECT_EQ(mxfp4_stack_meta(checkpoint, config_, "x"), stack.meta);
  constexpr std::int64_t kCount = kExperts * kRows * kGroups * 32;
  std::vector<float> values(kCount);
  dequantize_row(DType::mxfp4, stack.data(), values.data(), kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const auto byte = std::to_integer<unsigned>(codes_.data()[i / 2]);
    const float scale = std::exp2(static_cast<float>(std::to_integer<int>(exponents_.data()[i / 32])) - 127);
    EXPECT_EQ(values[static_cast<std::size_t>(i)], kValues[i % 2 == 0 ? byte & 15U : byte >> 4U] * scale) << i;
  }
}

TEST_F(Mxfp4Weight, MayHaveExponentsOfTheirOwnType) {
  const Checkpoint checkpoint = open({kExperts, kRows, kGroups, 16}, {kExperts, kRows, kGroups}, DType::f8e8m0);
  check_mxfp4_stack(checkpoint, config_, "x", {kExperts, kRows, kGroups * 32});
  const Tensor stack = mxfp4_stack(checkpoint, config_, "x");
  EXPECT_EQ(stack.meta.text(), "mxfp4[2, 3, 64]");
  EXPECT_EQ(stack.data()[0], exponents_.data()[0]);
}

TEST_F(Mxfp4Weight, NamesTheTensorThatDiffers) {
  const std::vector<std::int64_t> wanted{kExperts, kRows, kGroups * 32};
  const auto refusal = [&](const Checkpoint& checkpoint) {
    return message_of([&] { check_mxfp4_stack(checkpoint, config_, "x", wanted); });
  };
  EXPECT_NE(refusal(open({kExperts, kRows, kGroups, 8}, {kExperts, kRows, kGroups}))
                .find("tensor x_blocks must be u8[2, 3, 2, 16], but is u8[2, 3, 2, 8]"),
            std::string::npos);
  EXPECT_NE(refusal(open({kExperts, kRows, kGroups, 16}, {kExperts, kRows}))
                .find("tensor x_scales must be u8[2, 3, 2], but is u8[2, 3]"),
            std::string::npos);
}

TEST_F(Mxfp4Weight, RefusesWhatIsNoStackOfGroups) {
  const auto refusal = [&](const std::vector<std::int64_t>& shape) {
    return message_of([&] { mxfp4_tensors(config_, "x", shape); });
  };
  EXPECT_NE(refusal({kRows, kGroups * 32}).find("[x] must be a stack"), std::string::npos);
  EXPECT_NE(refusal({kExperts, kRows, kGroups * 32 + 1}).find("[x] must be a stack"), std::string::npos);
}

}  // namespace weft::mxfp4_weight_test
