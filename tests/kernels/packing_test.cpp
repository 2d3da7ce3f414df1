// How pack_weight passes a weight to a packing, with a packing that records its calls.

#include "kernels/packing.h"

#include <cstring>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::packing_test {

// A unit for each row: the row's bytes, turned around.
Packing reversed_rows() {
  Packing packing;
  packing.name = "reversed";
  packing.bytes = [](const Meta& plain) { return plain.bytes().number(); };
  packing.units = [](const Meta& plain) { return plain.shape[0].number(); };
  packing.pack = [](const Meta& plain, const std::function<const std::byte*(std::int64_t)>& row, std::byte* packed,
                    std::int64_t unit) {
    const std::int64_t width = plain.shape[1].number();
    for (std::int64_t i = 0; i < width; ++i) packed[unit * width + i] = row(unit)[width - 1 - i];
  };
  return packing;
}

Tensor counted(std::int64_t rows, std::int64_t width, int first) {
  Tensor tensor = Tensor::empty(Meta::tensor(DType::u8, {rows, width}));
  for (std::int64_t i = 0; i < rows * width; ++i) tensor.data()[i] = static_cast<std::byte>(first + i);
  return tensor;
}

TEST(PackWeight, TakesTheRowsOfAllPartsInTheirOrder) {
  ThreadPool threads(2);
  const std::vector<Tensor> parts{counted(2, 3, 10), counted(0, 3, 0), counted(1, 3, 20)};
  const Tensor packed = pack_weight(reversed_rows(), parts, threads);
  EXPECT_EQ(packed.meta.text(), "u8[3, 3] packed=reversed");
  const std::vector<std::uint8_t> wanted{12, 11, 10, 15, 14, 13, 22, 21, 20};
  ASSERT_EQ(packed.storage->bytes(), 9);
  EXPECT_EQ(std::memcmp(packed.data(), wanted.data(), wanted.size()), 0);
}

TEST(PackWeight, PacksPartByPartEachUnitOnce) {
  ThreadPool threads(2);
  std::mutex mutex;
  std::set<std::int64_t> packed_units;
  std::vector<std::size_t> after;  // units that were packed when each part ended
  Packing packing = reversed_rows();
  packing.pack = [&](const Meta&, const auto&, std::byte*, std::int64_t unit) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(packed_units.insert(unit).second) << unit;
  };
  const Tensor plain = Tensor::empty(Meta::tensor(DType::u8, {50, 100 << 10}));
  pack_weight(packing, {&plain, 1}, threads, [&] { after.push_back(packed_units.size()); });
  EXPECT_EQ(after, (std::vector<std::size_t>{20, 40, 50})) << "20 rows are 2 MB";
}

TEST(PackWeight, PacksIntoTheMemoryThatItIsGiven) {
  ThreadPool threads(1);
  const Tensor plain = counted(2, 3, 10);
  const std::shared_ptr<Storage> room = Storage::allocate(6);
  const Tensor packed = pack_weight(reversed_rows(), {&plain, 1}, threads, nullptr, room);
  EXPECT_EQ(packed.storage, room);
  EXPECT_EQ(static_cast<int>(*room->data()), 12);
  EXPECT_THROW(pack_weight(reversed_rows(), {&plain, 1}, threads, nullptr, Storage::allocate(7)), InternalError);
}

TEST(PackWeight, RefusesPartsThatAreNoRowsOfOneWeight) {
  ThreadPool threads(1);
  const Packing packing = reversed_rows();
  Tensor packed = counted(2, 3, 0), strided = counted(2, 3, 0);
  packed.meta.packed = "reversed";
  strided.meta = Meta::strided(DType::u8, {2, 2}, {3, 1});
  for (const std::vector<Tensor>& parts : {std::vector<Tensor>{},
                                           {counted(2, 3, 0), counted(2, 4, 0)},
                                           {packed},
                                           {strided},
                                           {counted(2, 3, 0), Tensor::empty(Meta::tensor(DType::i8, {2, 3}))},
                                           {Tensor::empty(Meta::tensor(DType::u8, {3}))}})
    EXPECT_THROW(pack_weight(packing, parts, threads), InternalError);
}

}  // namespace weft::packing_test
