// The blocks that codes and their scales are read as have the numbers of the dequantized weight, bit for bit.

#include "io/quantized_weight.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tests/io/checkpoint_parts.h"

namespace weft::quantized_weight_test {

using checkpoint_parts::Folder;

constexpr std::int64_t kRows = 40;  // more than are read at a time, and no multiple of them
const std::string kWeight = "model.layers.0.mlp.up_proj.weight";

// Writes a weight of `columns` codes that count through all bytes, or through all but NaN, and scales of many
// magnitudes.
Checkpoint write_weight(const Folder& folder, const QuantizationConfig& config, std::int64_t columns) {
  std::vector<NamedTensor> tensors;
  for (const NamedMeta& one : quantized_tensors(config, kWeight, kRows, columns)) {
    Tensor tensor = Tensor::empty(one.meta);
    const DType dtype = one.meta.dtype;
    for (std::int64_t i = 0; i < element_count(one.meta.shape).number(); ++i) {
      if (dtype == DType::f32) {
        tensor.as<float>()[i] = 0.7f * std::exp2(static_cast<float>(i % 11) - 9.0f);
      } else {
        const auto code = static_cast<std::uint8_t>(i * 37 + i / 256);
        const bool is_nan = dtype == DType::f8e4m3 && (code & 0x7f) == 0x7f;
        tensor.as<std::uint8_t>()[i] = is_nan ? std::uint8_t{0x7e} : code;
      }
    }
    tensors.push_back({one.name, tensor});
  }
  folder.add("model.safetensors", tensors);
  return Checkpoint::open(folder.path());
}

struct Case {
  QuantizationConfig config;
  std::int64_t columns;
  DType blocks;
};

QuantizationConfig config_of(QuantizationScheme scheme, DType codes) {
  QuantizationConfig config;
  config.scheme = scheme;
  config.codes = codes;
  config.method = scheme == QuantizationScheme::block ? "fp8" : "compressed-tensors";
  return config;
}
QuantizationConfig scaled(DType codes, bool scale_per_row) {
  QuantizationConfig config = config_of(QuantizationScheme::scaled, codes);
  config.scale_per_row = scale_per_row;
  return config;
}
QuantizationConfig by_block(std::int64_t columns) {
  QuantizationConfig config = config_of(QuantizationScheme::block, DType::f8e4m3);
  config.block_rows = 16;
  config.block_columns = columns;
  return config;
}

TEST(QuantizedWeight, BlocksHaveTheNumbers) {
  using enum DType;
  const QuantizationConfig fours = config_of(QuantizationScheme::nvfp4, f4e2m1);
  for (const Case& one :
       {Case{by_block(128), 256, e4m3g128}, Case{by_block(64), 128, e4m3g32}, Case{by_block(16), 128, f32},
        Case{by_block(128), 160, e4m3g32}, Case{by_block(128), 200, f32}, Case{scaled(f8e4m3, true), 256, e4m3g128},
        Case{scaled(f8e4m3, true), 96, e4m3g32}, Case{scaled(f8e4m3, false), 128, e4m3g128},
        Case{scaled(f8e4m3, true), 48, f32}, Case{scaled(i8, true), 96, i8g32}, Case{scaled(i8, true), 48, f32},
        Case{fours, 128, e2m1g16}, Case{fours, 96, f32}}) {
    const Folder folder;
    const Checkpoint checkpoint = write_weight(folder, one.config, one.columns);
    const DType dtype = dtype_of_codes(one.config, quantized_codes(checkpoint, one.config, kWeight).meta);
    SCOPED_TRACE(fmt::format("{} columns as {}", one.columns, dtype_text(dtype)));
    ASSERT_EQ(dtype, one.blocks);
    check_quantized_weight(checkpoint, one.config, kWeight, kRows, one.columns);
    const Tensor wanted = dequantized_weight(checkpoint, one.config, kWeight);
    const WeightRows rows = weight_rows(checkpoint, one.config, kWeight, dtype);
    ASSERT_EQ(rows.meta, Meta::tensor(dtype, {kRows, one.columns}));
    Tensor blocks = Tensor::empty(rows.meta);
    const std::int64_t half = kRows / 2;
    rows.read(half, half, blocks.data() + bytes_of(dtype, half * one.columns));
    rows.read(0, half, blocks.data());
    std::vector<float> values(static_cast<std::size_t>(kRows * one.columns));
    convert_row(dtype, blocks.data(), f32, reinterpret_cast<std::byte*>(values.data()), kRows * one.columns);
    // Equal numbers: integer codes have no -0.
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], wanted.as<float>()[i]) << i;
  }
}

TEST(QuantizedWeight, NumbersAreRoundedToTheTypeThatIsAsked) {
  const Folder folder;
  const QuantizationConfig config = scaled(DType::f8e4m3, true);
  const Checkpoint checkpoint = write_weight(folder, config, 96);
  const Tensor wanted = dequantized_weight(checkpoint, config, kWeight);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const WeightRows rows = weight_rows(checkpoint, config, kWeight, dtype);
    ASSERT_EQ(rows.meta, Meta::tensor(dtype, {kRows, 96}));
    Tensor numbers = Tensor::empty(rows.meta), rounded = Tensor::empty(rows.meta);
    rows.read(0, kRows, numbers.data());
    convert_row(DType::f32, wanted.data(), dtype, rounded.data(), kRows * 96);
    const auto bytes = static_cast<std::size_t>(rows.meta.bytes().number());
    EXPECT_EQ(std::memcmp(numbers.data(), rounded.data(), bytes), 0) << dtype_text(dtype);
  }
}

}  // namespace weft::quantized_weight_test
