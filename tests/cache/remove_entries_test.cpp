#include "cache/remove_entries.h"

#include <algorithm>
#include <ctime>

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/cache/cache_case.h"

namespace weft::remove_entries_test {

constexpr std::int64_t kEntryBytes = 1128;  // of an entry of 1000 bytes of payload

std::vector<int> left(CacheCase& files, int count) {
  std::vector<int> numbers;
  for (int number = 0; number < count; ++number)
    if (std::filesystem::exists(files.path_of(numbered_key(number)))) numbers.push_back(number);
  return numbers;
}

// Entries 0, 1, ... of which each was used 100 seconds after the one before.
void fill(CacheCase& files, int count) {
  const auto cache = files.open();
  for (int number = 0; number < count; ++number) {
    ASSERT_TRUE(cache->store(numbered_key(number), numbered_payload(number)));
    set_modified(files.path_of(numbered_key(number)), 1'000'000 + 100 * number);
  }
  ASSERT_EQ(std::filesystem::file_size(files.path_of(numbered_key(0))), static_cast<std::uintmax_t>(kEntryBytes));
}

TEST(RemoveEntries, ThoseNotUsedForLongestGoWhenTheLimitIsPassed) {
  CacheCase files;
  fill(files, 5);
  const auto cache = files.open(hasty_disk(), 4 * kEntryBytes);
  EXPECT_EQ(finds(*cache, 0), true);  // and so it is the last to go
  ASSERT_TRUE(cache->store(numbered_key(5), numbered_payload(5)));
  EXPECT_EQ(left(files, 6), (std::vector<int>{0, 3, 4, 5}));
  ASSERT_TRUE(cache->store(numbered_key(6), numbered_payload(6)));
  EXPECT_EQ(left(files, 7), (std::vector<int>{0, 4, 5, 6}));
  EXPECT_TRUE(files.warnings.empty());
}

TEST(RemoveEntries, AHitCountsAsAUseOnceInEachProcess) {
  CacheCase files;
  fill(files, 1);
  const std::string path = files.path_of(numbered_key(0));
  const auto cache = files.open();
  EXPECT_EQ(finds(*cache, 0), true);
  EXPECT_GT(modified_of(path), 1'000'000);
  set_modified(path, 5);
  EXPECT_EQ(finds(*cache, 0), true);
  EXPECT_EQ(modified_of(path), 5);
  EXPECT_EQ(finds(*files.open(), 0), true);
  EXPECT_GT(modified_of(path), 1'000'000);
}

TEST(RemoveEntries, EqualTimesGoByName) {
  CacheCase files;
  fill(files, 6);
  std::vector<std::string> names;
  for (int number = 0; number < 6; ++number) {
    set_modified(files.path_of(numbered_key(number)), 7);
    names.push_back(files.path_of(numbered_key(number)));
  }
  std::sort(names.begin(), names.end());
  const CachePruned pruned = files.open()->prune(2 * kEntryBytes);
  EXPECT_EQ(pruned.entries, 4);
  EXPECT_EQ(pruned.bytes, 4 * kEntryBytes);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(std::filesystem::exists(names[i]), i >= 4) << i;
}

TEST(RemoveEntries, AClockThatWasSetBackOrForwardBreaksNothing) {
  CacheCase files;
  fill(files, 4);
  const std::int64_t now = std::time(nullptr);
  set_modified(files.path_of(numbered_key(0)), now + 365 * 86400);
  set_modified(files.path_of(numbered_key(1)), -1000);
  set_modified(files.path_of(numbered_key(2)), 0);
  const auto cache = files.open(hasty_disk(), 4 * kEntryBytes);
  for (int number = 0; number < 4; ++number) {
    EXPECT_EQ(finds(*files.open(), number), true) << number;
    EXPECT_NEAR(static_cast<double>(modified_of(files.path_of(numbered_key(number)))), static_cast<double>(now), 600);
  }
  // No one used these since the clock was set back; they must not be kept for the years until it reaches that time
  // again.
  for (int number = 0; number < 4; ++number)
    set_modified(files.path_of(numbered_key(number)), now + (4 - number) * 86400);
  set_modified(files.path_of(numbered_key(2)), 1000);
  ASSERT_TRUE(cache->store(numbered_key(4), numbered_payload(4)));
  const std::vector<int> rest = left(files, 5);
  EXPECT_EQ(rest.size(), 4u);
  EXPECT_EQ(std::count(rest.begin(), rest.end(), 2), 1);
  EXPECT_EQ(finds(*cache, 4), true);
  EXPECT_TRUE(files.warnings.empty());
}

TEST(RemoveEntries, WhatWasJustStoredStaysWhateverItsTime) {
  CacheCase files;
  fill(files, 2);
  const std::string kept = files.path_of(numbered_key(0));
  const CacheRoom room = remove_entries(files.root(), kEntryBytes, kept, host_file_system());
  EXPECT_EQ(left(files, 2), std::vector<int>{0});
  EXPECT_EQ(room.bytes_left, kEntryBytes);
}

TEST(RemoveEntries, AnEntryLargerThanTheLimitIsNotStored) {
  CacheCase files;
  fill(files, 2);
  const auto cache = files.open(hasty_disk(), 3 * kEntryBytes);
  EXPECT_FALSE(cache->store(numbered_key(2), numbered_payload(2, 4000)));
  EXPECT_EQ(left(files, 3), (std::vector<int>{0, 1}));
  EXPECT_EQ(files.warnings.size(), 1u);
}

TEST(RemoveEntries, ALongRowOfStoresStaysWithinTheLimit) {
  CacheCase files;
  const std::int64_t limit = 40 * kEntryBytes;
  const auto cache = files.open(hasty_disk(), limit);
  for (int number = 0; number < 200; ++number) {
    ASSERT_TRUE(cache->store(numbered_key(number), numbered_payload(number)));
    EXPECT_LE(static_cast<std::int64_t>(files.files()) * kEntryBytes, limit) << number;
  }
  EXPECT_GE(files.files(), 35u);
  EXPECT_EQ(finds(*cache, 199), true);
}

TEST(RemoveEntries, PruneTakesWhatKilledProcessesLeftAndNoOtherFile) {
  CacheCase files;
  fill(files, 3);
  const std::string old = files.kind_folder() + "/.weft-1-0.tmp", future = files.kind_folder() + "/.weft-1-1.tmp",
                    fresh = files.kind_folder() + "/.weft-1-2.tmp", foreign = files.kind_folder() + "/notes.txt",
                    above = files.root() + "/" + std::string(32, 'a') + ".weft";
  for (const std::string& path : {old, future, fresh, foreign, above}) put_text(path, "0123456789");
  set_modified(old, 1000);
  set_modified(future, std::time(nullptr) + 86400);
  std::filesystem::create_directories(files.root() + "/Not a kind");
  put_text(files.root() + "/Not a kind/" + std::string(32, 'a') + ".weft", "x");

  const CachePruned stale = files.open()->prune(kDefaultCacheBytes);
  EXPECT_EQ(stale.temporary_files, 2);
  EXPECT_EQ(stale.entries, 0);
  EXPECT_EQ(stale.bytes, 20);
  EXPECT_TRUE(std::filesystem::exists(fresh));
  const CachePruned all = files.open()->prune(0);
  EXPECT_EQ(all.temporary_files, 1);
  EXPECT_EQ(all.entries, 3);
  EXPECT_EQ(all.bytes, 10 + 3 * kEntryBytes);
  EXPECT_EQ(files.files(), 1u);
  EXPECT_TRUE(std::filesystem::exists(foreign) && std::filesystem::exists(above));
  EXPECT_TRUE(std::filesystem::exists(files.root() + "/Not a kind/" + std::string(32, 'a') + ".weft"));
}

TEST(RemoveEntries, PruneTakesWhatVerifyCallsBad) {
  CacheCase files;
  fill(files, 6);
  std::filesystem::copy(files.path_of(numbered_key(0)), files.path_of(numbered_key(2)),
                        std::filesystem::copy_options::overwrite_existing);
  put_text(files.path_of(numbered_key(1)), "damaged");
  std::filesystem::resize_file(files.path_of(numbered_key(3)), kEntryBytes - 1);
  std::string payload = file_text(files.path_of(numbered_key(4)));
  payload.back() = static_cast<char>(payload.back() + 1);
  put_text(files.path_of(numbered_key(4)), payload);
  ASSERT_EQ(::chmod(files.path_of(numbered_key(5)).c_str(), 0666), 0);
  const CachePruned pruned = files.open()->prune(kDefaultCacheBytes);
  EXPECT_EQ(pruned.entries, 5);
  EXPECT_EQ(pruned.bytes, 4 * kEntryBytes - 1 + 7);
  EXPECT_TRUE(pruned.left.empty());
  const std::string told = fmt::format("{}", fmt::join(pruned.bad, "\n"));
  for (const std::string& part : {files.path_of(numbered_key(2)), "that of rows " + numbered_key(0).hash().hex(),
                                  std::string("its payload is damaged"), std::string("others can write to it")})
    EXPECT_NE(told.find(part), std::string::npos) << told;
  EXPECT_EQ(left(files, 6), std::vector<int>{0});
  for (const CacheListing& entry : files.open()->list(CompileCache::Read::everything)) EXPECT_EQ(entry.problem, "");
  EXPECT_EQ(finds(*files.open(), 0), true);
}

// Each look-up and store of that key warns, so verify names it. Its files may be of use to someone, so it stays.
TEST(RemoveEntries, AFolderWithTheNameOfAnEntryIsBadAndAFailure) {
  CacheCase files;
  fill(files, 2);
  const std::string folder = files.path_of(numbered_key(2));
  std::filesystem::create_directory(folder);
  put_text(folder + "/notes", "mine");
  const auto entries = files.open()->list(CompileCache::Read::everything);
  ASSERT_EQ(entries.size(), 3u);
  for (const CacheListing& entry : entries)
    EXPECT_EQ(entry.problem, entry.path == folder ? "[\"" + folder + "\"] is not used: it is not a file" : "");
  for (const std::int64_t most_bytes : {kDefaultCacheBytes, std::int64_t{0}}) {
    const CachePruned pruned = files.open()->prune(most_bytes);
    EXPECT_EQ(pruned.entries, most_bytes == 0 ? 2 : 0);
    EXPECT_EQ(pruned.failures, std::vector<std::string>{"[\"" + folder + "\"] cannot be removed: Is a directory"});
    EXPECT_TRUE(pruned.left.empty());
  }
  EXPECT_EQ(file_text(folder + "/notes"), "mine");
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(files.open()->prune(0).failures.empty());
}

TEST(RemoveEntries, NothingIsThereWhereThereIsNoFolder) {
  CacheCase files;
  EXPECT_EQ(files.open()->prune(0).entries, 0);
  EXPECT_TRUE(files.open()->list().empty());
  EXPECT_FALSE(std::filesystem::exists(files.root()));
}

}  // namespace weft::remove_entries_test
