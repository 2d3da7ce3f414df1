// The recorded numbers of tests/data/ops: decode tables and the codes that PyTorch's casts give.

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tensor/convert.h"
#include "tensor/float_bits.h"

namespace weft::number_vectors_test {

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

const std::map<std::string, DType> kDTypes = {{"float8_e4m3fn", DType::f8e4m3},
                                              {"float8_e5m2", DType::f8e5m2},
                                              {"float8_e8m0fnu", DType::f8e8m0},
                                              {"bfloat16", DType::bf16},
                                              {"float16", DType::f16}};

// The bytes of each tensor of a safetensors file.
std::map<std::string, std::string> read_tensors(const std::string& path) {
  const std::string file = read_file(path);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  std::map<std::string, std::string> tensors;
  const auto header = nlohmann::json::parse(file.substr(8, header_bytes));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t begin = entry["data_offsets"][0];
    const std::size_t end = entry["data_offsets"][1];
    tensors[name] = file.substr(8 + header_bytes + begin, end - begin);
  }
  return tensors;
}

const std::byte* bytes(const std::string& data) { return reinterpret_cast<const std::byte*>(data.data()); }

TEST(NumberVectors, EqualPyTorchBitForBit) {
  const std::string stem = std::string(WEFT_TEST_DATA) + "/ops/numbers";
  const auto manifest = nlohmann::json::parse(read_file(stem + ".manifest.json"));
  const std::map<std::string, std::string> tensors = read_tensors(stem + ".safetensors");
  int compared = 0;
  for (const auto& entry : manifest["cases"]) {
    const std::string name = entry["case"];
    const DType dtype = kDTypes.at(name.substr(name.find('.') + 1));
    const std::string& expected = tensors.at(name + "/out/0");
    const std::int64_t code_bytes = dtype_info(dtype).block_bytes;
    const bool decodes = entry["op"] == "decode";
    const std::string& input = tensors.at(name + (decodes ? "/in/code" : "/in/bits"));
    const auto count = static_cast<std::int64_t>(input.size()) / (decodes ? code_bytes : 4);
    std::string converted(static_cast<std::size_t>(count * (decodes ? 4 : code_bytes)), '\0');
    const DType from = decodes ? dtype : DType::f32;
    const DType to = decodes ? DType::f32 : dtype;
    convert_row(from, bytes(input), to, reinterpret_cast<std::byte*>(converted.data()), count);
    ASSERT_EQ(converted.size(), expected.size()) << name;
    for (std::int64_t i = 0; i < count; ++i, ++compared) {
      const float wanted = load_float(to, bytes(expected), i);
      const float got = load_float(to, bytes(converted), i);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(got)) << name << " " << i;
        continue;
      }
      EXPECT_EQ(bits_of_float(got), bits_of_float(wanted)) << name << " " << i;
      const std::int64_t width = decodes ? 4 : code_bytes;
      EXPECT_EQ(converted.compare(i * width, width, expected, i * width, width), 0) << name << " " << i;
    }
  }
  EXPECT_GT(compared, 20000);
}

}  // namespace weft::number_vectors_test
