#include "io/safetensors_writer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "io/safetensors.h"
#include "tests/base/temporary_folder.h"

namespace weft::safetensors_writer_test {

NamedTensor named(const std::string& name, DType dtype, const Shape& shape, int seed = 1) {
  NamedTensor result{name, Tensor::empty(Meta::tensor(dtype, shape))};
  const auto bytes = result.tensor.meta.bytes().number();
  for (std::int64_t i = 0; i < bytes; ++i)
    result.tensor.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 7 + seed);
  return result;
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const std::vector<NamedTensor> items = {named("narrow", DType::u8, {3}, 5), named("z", DType::bf16, {2, 3}, 6),
                                          named("empty", DType::f32, {0, 4}), named("scalar", DType::f64, {}, 7),
                                          named("code \"4\"", DType::f4e2m1, {6}, 8)};
  const auto bytes = encode_safetensors(items, {{"format", "pt"}});
  const auto file = Safetensors::parse(bytes, "written");
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(file.tensors.size(), items.size());
  for (const auto& item : items) {
    const auto at = std::find_if(file.tensors.begin(), file.tensors.end(),
                                 [&](const auto& tensor) { return tensor.name == item.name; });
    ASSERT_NE(at, file.tensors.end()) << item.name;
    EXPECT_EQ(at->dtype, item.tensor.meta.dtype);
    EXPECT_EQ(Shape(at->shape.begin(), at->shape.end()), item.tensor.meta.shape);
    EXPECT_EQ(at->bytes, item.tensor.meta.bytes().number());
    EXPECT_EQ(std::memcmp(bytes.data() + at->offset, item.tensor.data(), static_cast<std::size_t>(at->bytes)), 0);
    EXPECT_EQ(at->offset % dtype_info(at->dtype).block_bytes, 0) << item.name;
  }
}

TEST(SafetensorsWriter, GivesTheSameBytesInWhateverOrderTensorsCome) {
  std::vector<NamedTensor> items = {named("b", DType::f32, {2}), named("a", DType::f32, {2}),
                                    named("c", DType::i64, {1})};
  const auto bytes = encode_safetensors(items);
  std::reverse(items.begin(), items.end());
  EXPECT_EQ(encode_safetensors(items), bytes);
}

TEST(SafetensorsWriter, WritesStridedTensorsContiguously) {
  auto item = named("t", DType::u8, {6});
  std::iota(item.tensor.as<std::uint8_t>(), item.tensor.as<std::uint8_t>() + 6, 0);
  item.tensor.meta = Meta::strided(DType::u8, {3, 2}, {1, 3});
  const auto bytes = encode_safetensors({&item, 1});
  const auto file = Safetensors::parse(bytes, "written");
  const std::uint8_t wanted[] = {0, 3, 1, 4, 2, 5};
  EXPECT_EQ(std::memcmp(bytes.data() + file.tensors[0].offset, wanted, 6), 0);
}

TEST(SafetensorsWriter, RefusesWhatTheFormatCannotHold) {
  const auto refuse = [](const std::vector<NamedTensor>& items,
                         const std::map<std::string, std::string>& metadata = {}) {
    EXPECT_THROW(encode_safetensors(items, metadata), UserError);
  };
  refuse({named("q", DType::q4_1, {32})});
  refuse({named("i", DType::i4, {2})});
  refuse({named("", DType::f32, {1})});
  refuse({named("__metadata__", DType::f32, {1})});
  refuse({named("a\xff", DType::f32, {1})});
  refuse({named("a\n", DType::f32, {1})});
  refuse({named("a", DType::f32, {1}), named("a", DType::f32, {1})});
  refuse({}, {{"a", "\xff"}});
}

TEST(SafetensorsWriter, WritesAFile) {
  const TemporaryFolder folder;
  const auto item = named("a", DType::f32, {4});
  write_safetensors(folder / "out.safetensors", {&item, 1});
  const MappedFile map(folder / "out.safetensors");
  EXPECT_EQ(Safetensors::parse(map.bytes(), "written").tensors[0].name, "a");
  EXPECT_THROW(write_safetensors(folder / "missing/out.safetensors", {&item, 1}), UserError);
}

}  // namespace weft::safetensors_writer_test
