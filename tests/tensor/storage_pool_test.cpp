#include "tensor/storage_pool.h"

#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::storage_pool_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeepsBlocks = false;
#else
constexpr bool kKeepsBlocks = true;
#endif

TEST(StoragePool, GivesAlignedMemoryOfTheAskedSize) {
  StoragePool pool;
  for (const std::int64_t bytes : {0L, 1L, 64L, 65L, 128L, 129L, 65536L, 65537L, 1L << 20}) {
    const auto storage = pool.allocate(bytes);
    EXPECT_EQ(storage->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage->data()) % 64, 0u);
    std::memset(storage->data(), 1, static_cast<std::size_t>(bytes));
  }
  EXPECT_THROW(pool.allocate(-1), InternalError);
  EXPECT_THROW(pool.allocate(INT64_MAX), DeviceError);
}

TEST(StoragePool, GivesFreedMemoryOutAgainToASizeThatFits) {
  StoragePool pool;
  auto storage = pool.allocate(100);
  const std::byte* first = storage->data();
  storage.reset();
  storage = pool.allocate(128);
  EXPECT_EQ(storage->data() == first, kKeepsBlocks);
  EXPECT_EQ(storage->bytes(), 128);
  EXPECT_NE(pool.allocate(100)->data(), storage->data());
}

TEST(StoragePool, ItsMemoryMayOutliveIt) {
  std::shared_ptr<Storage> storage;
  {
    StoragePool pool;
    storage = pool.allocate(64);
  }
  std::memset(storage->data(), 7, 64);
  EXPECT_EQ(storage->data()[63], std::byte{7});
}

TEST(StoragePool, ThreadsMayGiveBackWhatOthersTook) {
  StoragePool pool;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::shared_ptr<Storage>> taken;
    for (int i = 0; i < 8; ++i) taken.push_back(pool.allocate(64 << (i % 3)));
    std::thread other([given = std::move(taken)]() mutable { given.clear(); });
    const auto mine = pool.allocate(64);
    std::memset(mine->data(), round, 64);
    other.join();
    EXPECT_EQ(mine->data()[0], static_cast<std::byte>(round));
  }
}

}  // namespace weft::storage_pool_test
