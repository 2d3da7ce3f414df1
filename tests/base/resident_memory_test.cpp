#include "base/resident_memory.h"

#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/loaded_objects.h"
#include "tests/base/temporary_folder.h"

namespace weft::resident_memory_test {

TEST(ResidentMemory, IsThatOfTouchedPages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::size_t kPages = 16;
  void* mapped = ::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  (void)::madvise(mapped, kPages * page, MADV_NOHUGEPAGE);
  const std::span<std::byte> bytes(static_cast<std::byte*>(mapped), kPages * page);
  EXPECT_EQ(resident_bytes(bytes), 0);
  for (const std::size_t at : {0, 3, 15}) bytes[at * page + 1] = std::byte{1};
  EXPECT_EQ(resident_bytes(bytes), static_cast<std::int64_t>(3 * page));
  EXPECT_EQ(resident_bytes(bytes.subspan(1, 3 * page)), static_cast<std::int64_t>(2 * page)) << "by whole pages";
  EXPECT_EQ(resident_bytes(bytes.subspan(4 * page, 5 * page)), 0);
  EXPECT_EQ(resident_bytes({}), 0);
  ::munmap(mapped, bytes.size());
  EXPECT_EQ(resident_bytes(bytes), std::nullopt) << "of what is not mapped the system says nothing";
}

TEST(ResidentMemory, IsGivenBackWhereItIsCleared) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* mapped = ::mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span<std::byte> bytes(static_cast<std::byte*>(mapped), 8 * page);
  for (const auto& [first, count] : {std::pair(page / 2, 6 * page), {3 * page + 1, std::size_t{5}}, {page, page}}) {
    std::fill(bytes.begin(), bytes.end(), std::byte{1});
    clear_memory(bytes.subspan(first, count));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      ASSERT_EQ(bytes[i], std::byte{i < first || i >= first + count}) << i << " of " << first << " and " << count;
  }
  std::fill(bytes.begin(), bytes.end(), std::byte{1});
  clear_memory(bytes.subspan(page / 2, 6 * page));
  EXPECT_EQ(resident_bytes(bytes.subspan(page, 5 * page)), 0);
  ::munmap(mapped, 8 * page);
}

TEST(ResidentMemory, HasAPeakWithAndWithoutProc) {
  constexpr std::int64_t kLeast = 1 << 20;
  EXPECT_GT(peak_resident_bytes(), kLeast);
  const TemporaryFolder empty;
  EXPECT_GT(peak_resident_bytes(empty.path()), kLeast);
}

// This includes the bytes between constants, which sanitizers keep free.
__attribute__((no_sanitize_address)) std::uint64_t sum_of(const std::vector<UnchangedPages>& pages) {
  std::uint64_t sum = 0;
  const UnchangedPages* const parts = pages.data();
  const std::size_t count = pages.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte *byte = parts[i].data(), *const end = byte + parts[i].size();
    for (; byte != end; ++byte) sum = sum * 31 + static_cast<std::uint64_t>(*byte);
  }
  return sum;
}

TEST(UnchangedPages, AreNotWrittenToAndComeBackWithTheirContent) {
  const std::vector<UnchangedPages> pages = unchanged_pages();
  ASSERT_GE(pages.size(), 4u) << "of the program, C, C++ and the loader";
  // Each is inside mappings that cannot be written to.
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char permissions[5] = {};
    ASSERT_EQ(std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions), 3) << line;
    for (const UnchangedPages& part : pages) {
      const auto first = reinterpret_cast<std::uintptr_t>(part.data());
      const bool meets = first < end && begin < first + part.size();
      EXPECT_FALSE(meets && permissions[1] != '-') << line;
    }
  }
  const std::uint64_t before = sum_of(pages);
  drop_unchanged_pages(pages);
  EXPECT_EQ(sum_of(pages), before);
}

TEST(UnchangedPages, OfWhatIsNoLongerLoadedAreLeftToWhomeverTheyAreOf) {
  constexpr std::size_t kBytes = 1 << 16;
  void* mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const UnchangedPages closed(static_cast<std::byte*>(mapped), kBytes);
  closed[0] = closed[kBytes - 1] = std::byte{7};
  drop_unchanged_pages({&closed, 1});
  EXPECT_EQ(closed[0], std::byte{7});
  EXPECT_EQ(closed[kBytes - 1], std::byte{7});
  ::munmap(mapped, kBytes);
}

}  // namespace weft::resident_memory_test
