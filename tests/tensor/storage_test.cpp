#include "tensor/storage.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/first_time_work.h"
#include "tests/thrown_message.h"

namespace weft::storage_test {

TEST(Storage, GivesZeroedAlignedMemoryOfEverySize) {
  for (const std::int64_t bytes :
       {0L, 1L, 63L, 4096L, (1L << 20) - 1, 1L << 20, (4L << 20) - 1, 4L << 20, (9L << 20) + 5}) {
    const std::shared_ptr<Storage> storage = Storage::allocate(bytes);
    ASSERT_NE(storage->data(), nullptr) << bytes;
    EXPECT_EQ(storage->bytes(), bytes);
    const std::uintptr_t alignment = bytes >= (4 << 20) ? 2 << 20 : 64;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage->data()) % alignment, 0u) << bytes;
    std::byte* end = storage->data() + bytes;
    EXPECT_TRUE(std::all_of(storage->data(), end, [](std::byte b) { return b == std::byte{0}; })) << bytes;
    std::fill(storage->data(), end, std::byte{1});
  }
}

TEST(Storage, IsCountedAndMayBeForbidden) {
  FirstTimeWork work;
  const FirstTimeScope scope(&work);
  Storage::allocate(64);
  EXPECT_EQ(work.counts(FirstTime::allocate).before_ready, 1);
  work.set_ready(true);
  const std::string message = message_of<InternalError>([] { Storage::allocate(4096); });
  EXPECT_NE(message.find("a tensor of 4096 bytes wants to allocate"), std::string::npos) << message;
}

TEST(Storage, ZerosTakeNoMemory) {
  constexpr std::int64_t kMegabyte = 1 << 20, kBytes = 256 * kMegabyte;
  const auto resident_bytes = [] {
    std::int64_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
  };
  const std::int64_t before = resident_bytes();
  const std::shared_ptr<Storage> zeros = Storage::zeros(kBytes);
  EXPECT_EQ(zeros->bytes(), kBytes);
  EXPECT_EQ(std::count(zeros->data(), zeros->data() + kBytes, std::byte{0}), kBytes);
  EXPECT_LT(resident_bytes() - before, 64 * kMegabyte);
  EXPECT_NE(Storage::zeros(0)->data(), nullptr);
  EXPECT_THROW(Storage::zeros(INT64_MAX), DeviceError);
}

TEST(StorageDeathTest, ZerosCannotBeWritten) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(*Storage::zeros(8)->data() = std::byte{1}, "");
}

TEST(Storage, KeepsTheOwnerOfAViewAlive) {
  auto owner = std::make_shared<std::string>("weights");
  const std::weak_ptr<std::string> watch = owner;
  auto* data = reinterpret_cast<std::byte*>(owner->data());
  std::shared_ptr<Storage> view = Storage::view_of(data, 7, owner);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(view->data(), data);
  EXPECT_EQ(view->bytes(), 7);
  view.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(Storage, ReportsMemoryThatIsNotThere) {
  EXPECT_THROW(Storage::allocate(INT64_MAX), DeviceError);
  EXPECT_THROW(Storage::allocate(std::int64_t{1} << 55), DeviceError);
  EXPECT_THROW(Storage::allocate(-1), InternalError);
}

}  // namespace weft::storage_test
