// Every block format of GGUF files against blocks that gguf-py decoded (tests/data/README.md), bit for bit.

#include <bit>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "base/files.h"
#include "io/safetensors.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tests/io/gguf_types.h"

namespace weft::block_vectors_test {

class BlockVectors : public ::testing::Test {
 public:
  BlockVectors() : file_(WEFT_TEST_DATA "/blocks/blocks.safetensors") {
    for (StoredTensor& tensor : Safetensors::parse(file_.bytes(), "blocks").tensors)
      tensors_.emplace(tensor.name, std::move(tensor));
  }
  // The names of types in these files are in lower case.
  static std::string name_of(DType dtype) {
    std::string name(dtype_text(dtype));
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    return name;
  }
  const StoredTensor& tensor(DType dtype, const char* part) const { return tensors_.at(name_of(dtype) + part); }
  const std::byte* data(const StoredTensor& tensor) const { return file_.bytes().data() + tensor.offset; }

 private:
  MappedFile file_;
  std::map<std::string, StoredTensor> tensors_;
};

void expect_bits(float wanted, float came, const std::string& where) {
  ASSERT_EQ(std::bit_cast<std::uint32_t>(wanted), std::bit_cast<std::uint32_t>(came)) << where << ": " << came;
}

TEST_F(BlockVectors, GiveTheRecordedBits) {
  for (const BlockFormat& format : block_formats()) {
    if (!testing::ggml_id(format.dtype)) continue;
    const StoredTensor& blocks = tensor(format.dtype, ".bytes");
    const StoredTensor& wanted = tensor(format.dtype, ".values");
    const std::int64_t count = wanted.shape[0] * wanted.shape[1];
    ASSERT_EQ(blocks.bytes, bytes_of(format.dtype, count)) << dtype_text(format.dtype);
    std::vector<float> values(static_cast<std::size_t>(count)), recorded(values.size()), converted(values.size());
    std::memcpy(recorded.data(), data(wanted), values.size() * sizeof(float));
    dequantize_row(format.dtype, data(blocks), values.data(), count);
    std::vector<std::uint16_t> rounded(values.size());
    convert_row(format.dtype, data(blocks), DType::bf16, reinterpret_cast<std::byte*>(rounded.data()), count);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string where = name_of(format.dtype) + " element " + std::to_string(i);
      expect_bits(recorded[i], values[i], where);
      std::uint16_t once = 0;
      convert_row(DType::f32, reinterpret_cast<const std::byte*>(&recorded[i]), DType::bf16,
                  reinterpret_cast<std::byte*>(&once), 1);
      ASSERT_EQ(once, rounded[i]) << where;
    }
  }
}

}  // namespace weft::block_vectors_test
