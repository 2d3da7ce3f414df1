// Each folder of tests/data/weights is a weight that another program packed, and the numbers that it made of the codes.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "io/config_fields.h"
#include "io/grouped_weight.h"
#include "io/quantized_weight.h"
#include "io/safetensors_writer.h"
#include "tensor/convert.h"
#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::recorded_weights_test {

constexpr const char* kWeight = "model.layers.0.mlp.up_proj.weight";

std::vector<std::string> folders() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_TEST_DATA "/weights"))
    if (entry.is_directory()) found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

QuantizationConfig config_of(const std::string& path) {
  const Json config = parse_json(read_file(path + "/config.json", 1 << 20));
  return quantization_from_json(JsonFields(config, path)).value();
}

// bitsandbytes multiplies by the scale and by 1 / 127, and rounds twice.
std::int64_t most_apart(const std::string& folder) { return folder == "bytes_of_rows" ? 1 : 0; }

// In units of the last place.
std::int64_t apart(float a, float b) {
  if (a == b) return 0;
  const float unit = std::nextafter(std::fabs(b), INFINITY) - std::fabs(b);
  return static_cast<std::int64_t>(std::ceil(std::fabs(a - b) / unit));
}

TEST(RecordedWeights, HaveTheNumbersOfTheProgramsThatPackedThem) {
  EXPECT_GE(folders().size(), 28u);
  for (const std::string& folder : folders()) {
    SCOPED_TRACE(folder);
    const std::string path = std::string(WEFT_TEST_DATA "/weights/") + folder;
    const Checkpoint checkpoint = Checkpoint::open(path);
    const QuantizationConfig config = config_of(path);
    const Tensor& wanted = checkpoint.tensor("expected.weight");
    const std::int64_t rows = wanted.meta.shape[0].number(), columns = wanted.meta.shape[1].number();
    check_quantized_weight(checkpoint, config, kWeight, rows, columns);
    const Tensor numbers = dequantized_weight(checkpoint, config, kWeight);
    ASSERT_EQ(numbers.meta, wanted.meta);
    for (std::int64_t i = 0; i < rows * columns; ++i)
      ASSERT_LE(apart(numbers.as<float>()[i], wanted.as<float>()[i]), most_apart(folder))
          << i << ": " << numbers.as<float>()[i] << " " << wanted.as<float>()[i];
  }
}

// mlx-lm pads no header.
TEST(RecordedWeights, MayBeginAtAnyByteOfTheFile) {
  const std::string path = WEFT_TEST_DATA "/weights/mlx_3";
  const Tensor wanted = dequantized_weight(Checkpoint::open(path), config_of(path), kWeight);
  const std::string file = read_file(path + "/model.safetensors", 1 << 20);
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  for (std::uint64_t more = 1; more < 8; ++more) {
    const TemporaryFolder folder;
    const std::uint64_t longer = header + more;
    std::string moved(sizeof longer, ' ');
    std::memcpy(moved.data(), &longer, sizeof longer);
    moved += file.substr(sizeof header, header) + std::string(more, ' ') + file.substr(sizeof header + header);
    write_then_rename(folder / "model.safetensors", moved);
    write_then_rename(folder / "config.json", read_file(path + "/config.json", 1 << 20));
    const Tensor numbers = dequantized_weight(Checkpoint::open(folder.path()), config_of(path), kWeight);
    EXPECT_EQ(std::memcmp(numbers.data(), wanted.data(), static_cast<std::size_t>(wanted.meta.bytes().number())), 0)
        << more;
  }
}

TEST(RecordedWeights, AreBlocksWhereATypeHasTheirValues) {
  const auto type_of = [](const std::string& folder) {
    const std::string path = std::string(WEFT_TEST_DATA "/weights/") + folder;
    return grouped_meta(Checkpoint::open(path), config_of(path), kWeight).dtype;
  };
  EXPECT_EQ(type_of("w8a16_groups"), DType::i8g32);
  EXPECT_EQ(type_of("w8a16_channels"), DType::i8g32);
  EXPECT_EQ(type_of("w8a16_zero_points"), DType::f32);
  EXPECT_EQ(type_of("gptq_2"), DType::i4g32);
  EXPECT_EQ(type_of("gptq_3"), DType::i4g64);
  EXPECT_EQ(type_of("gptq_8"), DType::q8_0);
  EXPECT_EQ(type_of("gptq_8_zero_points"), DType::f32);
  EXPECT_EQ(type_of("nf4"), DType::nf4g64);
  EXPECT_EQ(type_of("nf4_of_80_columns"), DType::f32);
  EXPECT_EQ(type_of("fp4"), DType::f32);
  EXPECT_EQ(type_of("bytes_of_rows"), DType::i8g32);
  for (const char* folder : {"mlx_2", "mlx_3", "mlx_4"}) EXPECT_EQ(type_of(folder), DType::q4_1) << folder;
  EXPECT_EQ(type_of("mlx_5"), DType::q5_1);
  for (const char* folder : {"mlx_6", "mlx_8"}) EXPECT_EQ(type_of(folder), DType::f32) << folder;
  EXPECT_EQ(type_of("mlx_mxfp4"), DType::mxfp4);
  EXPECT_EQ(type_of("mlx_nvfp4"), DType::e2m1g16);
  EXPECT_EQ(type_of("mlx_nvfp4_of_80_columns"), DType::f32);
  EXPECT_EQ(type_of("mlx_mxfp8"), DType::e4m3g32);
}

// In either type of scales this byte is not a number.
TEST(RecordedWeights, HaveFiniteScales) {
  for (const char* name : {"mlx_mxfp4", "mlx_nvfp4", "mlx_nvfp4_of_80_columns", "mlx_mxfp8"}) {
    const std::string path = std::string(WEFT_TEST_DATA "/weights/") + name;
    const Checkpoint checkpoint = Checkpoint::open(path);
    const QuantizationConfig config = config_of(path);
    const std::string scales = quantized_names(config, kWeight).scale;
    std::vector<NamedTensor> tensors;
    for (const TensorEntry& entry : checkpoint.tensors()) {
      tensors.push_back({entry.name, Tensor::from_bytes(entry.tensor.meta, entry.tensor.data())});
      if (entry.name == scales) tensors.back().tensor.as<std::uint8_t>()[7] = 0xff;
    }
    const TemporaryFolder folder;
    write_safetensors(folder / "model.safetensors", tensors);
    write_then_rename(folder / "config.json", read_file(path + "/config.json", 1 << 20));
    const std::string message =
        message_of([&] { dequantized_weight(Checkpoint::open(folder.path()), config, kWeight); });
    EXPECT_NE(message.find("tensor " + scales + " must be finite"), std::string::npos) << name << ": " << message;
  }
}

TEST(RecordedWeights, HaveTheTensorsOfTheirMode) {
  const std::string path = WEFT_TEST_DATA "/weights/mlx_mxfp4";
  const Checkpoint checkpoint = Checkpoint::open(path);
  const auto refusal = [&](const char* mode, int bits, int group) {
    const Json codes{{"group_size", group}, {"bits", bits}, {"mode", mode}};
    const QuantizationConfig config = quantization_from_json(JsonFields({{"quantization", codes}}, path)).value();
    return message_of([&] { check_quantized_weight(checkpoint, config, kWeight, 32, 128); });
  };
  EXPECT_EQ(refusal("mxfp4", 4, 32), "");
  EXPECT_NE(refusal("affine", 4, 32).find("up_proj.scales must be bf16 or f16 or f32[32, 4]"), std::string::npos);
  EXPECT_NE(refusal("nvfp4", 4, 16).find("up_proj.scales must be u8[32, 8]"), std::string::npos);
  EXPECT_NE(refusal("mxfp8", 8, 32).find("up_proj.weight must be u32[32, 32]"), std::string::npos);
}

}  // namespace weft::recorded_weights_test
