#include "tensor/tensor.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::tensor_test {

TEST(Tensor, IsEmptyAndZeroed) {
  const Tensor tensor = Tensor::empty(Meta::tensor(DType::f32, {3, 5}));
  ASSERT_TRUE(tensor.defined());
  EXPECT_EQ(tensor.storage->bytes(), 60);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(tensor.as<float>()[i], 0.0f);
  EXPECT_THROW(Tensor::empty(Meta::tensor(DType::f32, {Dim::symbol("s0")})), InternalError);
  EXPECT_THROW(Tensor::empty(Meta::batch()), InternalError);
}

TEST(Tensor, HoldsPagesOfAKvCache) {
  const Meta meta = Meta::pages({DType::f16, 16, 3, 64});
  const Tensor tensor = Tensor::empty(meta, 5);
  const std::int64_t page = std::int64_t{2} * 3 * 16 * 64;
  EXPECT_EQ(tensor.storage->bytes(), 5 * page * 2);
  const TensorView view = tensor.view();
  EXPECT_EQ(view.kind, MetaKind::kv);
  EXPECT_EQ(view.dtype, DType::f16);
  ASSERT_EQ(view.rank, 1);
  EXPECT_EQ(view.size[0], 5);
  EXPECT_EQ(view.stride[0], page);
  EXPECT_THROW(Tensor::empty(meta, INT64_MAX / 4), UserError);
}

TEST(Tensor, ViewSpellsOutSizesAndStrides) {
  std::vector<float> values(24);
  const Tensor tensor = Tensor::from_bytes(Meta::tensor(DType::f32, {2, 3, 4}), values.data());
  const TensorView view = tensor.view();
  EXPECT_EQ(view.rank, 3);
  EXPECT_EQ(view.elements(), 24);
  EXPECT_EQ(std::vector<std::int64_t>(view.size, view.size + 3), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(std::vector<std::int64_t>(view.stride, view.stride + 3), (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(view.meta, &tensor.meta);
  EXPECT_FALSE(Tensor().view().present());
}

TEST(Tensor, ContiguousCopiesStridedElementsInOrder) {
  std::vector<std::int32_t> values(24);
  std::iota(values.begin(), values.end(), 0);
  const Tensor whole = Tensor::from_bytes(Meta::tensor(DType::i32, {4, 6}), values.data());
  Tensor columns = whole;
  columns.meta = Meta::strided(DType::i32, {3, 4}, {1, 6});
  columns.byte_offset = 2 * 4;
  const Tensor copy = contiguous(columns);
  EXPECT_TRUE(copy.meta.is_contiguous());
  EXPECT_NE(copy.storage, whole.storage);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) EXPECT_EQ(copy.as<std::int32_t>()[i * 4 + j], j * 6 + i + 2);
  EXPECT_EQ(contiguous(whole).storage, whole.storage);
}

TEST(Tensor, ContiguousCopiesPackedNibbles) {
  const std::vector<std::uint8_t> values = {0x10, 0x32, 0x54, 0x76};  // rows 0 1 2 3 and 4 5 6 7
  Tensor tensor = Tensor::from_bytes(Meta::tensor(DType::i4, {2, 4}), values.data());
  tensor.meta = Meta::strided(DType::i4, {4, 2}, {1, 4});
  const Tensor copy = contiguous(tensor);
  const auto* bytes = copy.as<std::uint8_t>();
  EXPECT_EQ(std::vector<std::uint8_t>(bytes, bytes + 4), (std::vector<std::uint8_t>{0x40, 0x51, 0x62, 0x73}));
}

TEST(Tensor, AnEmptyDimHoldsNothing) {
  const Tensor tensor = Tensor::from_bytes(Meta::tensor(DType::f32, {0, 4}), nullptr);
  EXPECT_EQ(tensor.view().elements(), 0);
  EXPECT_NE(tensor.view().data, nullptr);
}

}  // namespace weft::tensor_test
