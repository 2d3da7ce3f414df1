// Faults that a disk, an administrator or another user can cause in a compile cache.

#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "cache/compile_cache.h"
#include "tests/base/failing_file_system.h"
#include "tests/cache/cache_case.h"
#include "tests/cache/unwritable_disk.h"

namespace weft::compile_cache_faults_test {

class FullDisk final : public FailingFileSystem {
 public:
  FullDisk() : FailingFileSystem(0, 0) {}
  ssize_t write(int, const void*, std::size_t) const override { return refuse(); }

 private:
  static int refuse() {
    errno = ENOSPC;
    return -1;
  }
};

// Records which data was synced to the disk, and when.
class RecordingDisk final : public FailingFileSystem {
 public:
  RecordingDisk() : FailingFileSystem(0, 0) {}
  ssize_t write(int descriptor, const void* bytes, std::size_t count) const override {
    calls_.push_back("write");
    return FailingFileSystem::write(descriptor, bytes, count);
  }
  int sync(int) const override {
    calls_.push_back("sync");
    return 0;
  }
  int rename(const std::string& from, const std::string& to) const override {
    calls_.push_back("rename");
    return FailingFileSystem::rename(from, to);
  }
  const std::vector<std::string>& calls() const { return calls_; }

 private:
  mutable std::vector<std::string> calls_;
};

// One path belongs to another user: when it is checked, when it is opened, or both.
class SharedDisk final : public FailingFileSystem {
 public:
  SharedDisk(std::string path, bool looked_at, bool opened)
      : FailingFileSystem(0, 0), path_(std::move(path)), looked_at_(looked_at), opened_(opened) {}

  int inspect(const std::string& path, FileStatus& status) const override {
    const int result = FailingFileSystem::inspect(path, status);
    if (looked_at_ && path == path_) ++status.owner;
    return result;
  }
  int open_to_read(const std::string& path) const override {
    opened_path_ = path;
    return FailingFileSystem::open_to_read(path);
  }
  int inspect_open(int descriptor, FileStatus& status) const override {
    const int result = FailingFileSystem::inspect_open(descriptor, status);
    if (opened_ && opened_path_ == path_) ++status.owner;
    return result;
  }

 private:
  std::string path_;
  bool looked_at_, opened_;
  mutable std::string opened_path_;
};

TEST(CompileCacheFaults, AFullDiskLosesWhatIsStoredAndNothingElse) {
  CacheCase files;
  ASSERT_TRUE(files.open()->store(numbered_key(0), numbered_payload(0)));
  const FullDisk disk;
  const auto cache = files.open(disk);
  for (int number = 0; number < 5; ++number) EXPECT_FALSE(cache->store(numbered_key(number), numbered_payload(9)));
  EXPECT_EQ(finds(*cache, 0), true);
  EXPECT_EQ(finds(*cache, 1), std::nullopt);
  EXPECT_EQ(files.files(), 1u);
  ASSERT_EQ(files.warnings.size(), 1u);
  EXPECT_EQ(files.warnings[0], "[\"" + files.kind_folder() + "\"] cannot write: No space left on device");
  EXPECT_EQ(cache->counters().failures, 5);
}

// After a crash of the machine there is a whole entry or none, because the name is written after the bytes. The
// directory is not fsynced.
TEST(CompileCacheFaults, AStoreWaitsForTheDiskOnceAndBeforeThereIsAName) {
  CacheCase files;
  const RecordingDisk disk;
  ASSERT_TRUE(files.open(disk)->store(numbered_key(0), numbered_payload(0)));
  EXPECT_EQ(disk.calls(), (std::vector<std::string>{"write", "write", "sync", "rename"}));
}

TEST(CompileCacheFaults, AReadOnlyFolderIsStillRead) {
  CacheCase files;
  for (const int number : {1, 2}) ASSERT_TRUE(files.open()->store(numbered_key(number), numbered_payload(number)));
  set_modified(files.path_of(numbered_key(1)), 1000);
  const UnwritableDisk disk(EROFS);
  const auto cache = files.open(disk);
  EXPECT_EQ(finds(*cache, 1), true);
  EXPECT_EQ(modified_of(files.path_of(numbered_key(1))), 1000);
  EXPECT_EQ(finds(*cache, 3), std::nullopt);
  EXPECT_TRUE(files.warnings.empty());
  for (int number = 3; number < 6; ++number) EXPECT_FALSE(cache->store(numbered_key(number), numbered_payload(number)));
  EXPECT_EQ(files.warnings.size(), 1u);

  const std::vector<std::string> paths{files.path_of(numbered_key(1)), files.path_of(numbered_key(2)),
                                       files.kind_folder() + "/.weft-1-0.tmp"};
  put_text(paths[1], "damaged");
  put_text(paths[2], "of a process that runs");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(finds(*cache, 2), std::nullopt);
  EXPECT_EQ(files.warnings.size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(files.path_of(numbered_key(2))));
  // Each of the three files is a failure once, also the damaged one.
  const CachePruned pruned = cache->prune(0);
  EXPECT_EQ(pruned.entries, 0);
  std::vector<std::string> wanted;
  for (const std::string& path : paths) wanted.push_back("[\"" + path + "\"] cannot be removed: Read-only file system");
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(pruned.failures, wanted);
  for (const std::string& path : paths) EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(cache->prune(kDefaultCacheBytes).failures.size(), 1u);  // the damaged one
}

TEST(CompileCacheFaults, AMissingFolderThatCannotBeMadeIsOneWarning) {
  CacheCase files;
  const UnwritableDisk disk(EROFS);
  const auto cache = files.open(disk);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(finds(*cache, i), std::nullopt);
    EXPECT_FALSE(cache->store(numbered_key(i), numbered_payload(i)));
  }
  ASSERT_EQ(files.warnings.size(), 1u);
  EXPECT_EQ(files.warnings[0], "[\"" + files.root() + "\"] cannot make the folder: Read-only file system");
}

TEST(CompileCacheFaults, WhatCannotBeStoredIsOneWarningWhateverItsKind) {
  CacheCase files;
  std::filesystem::create_directory(files.root());
  const UnwritableDisk disk(EROFS);
  const auto cache = files.open(disk);
  for (const char* kind : {"rows", "plans", "tuning"})
    EXPECT_FALSE(cache->store(numbered_key(1, kind), numbered_payload(1)));
  EXPECT_EQ(files.warnings.size(), 1u);
  EXPECT_EQ(cache->counters().failures, 3);
}

TEST(CompileCacheFaults, WhatOthersCanWriteIsNotLoaded) {
  for (const mode_t others : {S_IWGRP, S_IWOTH, S_IWGRP | S_IWOTH}) {
    CacheCase files;
    ASSERT_TRUE(files.open()->store(numbered_key(1), numbered_payload(1)));
    for (const std::string& path : {files.root(), files.kind_folder(), files.path_of(numbered_key(1))}) {
      files.warnings.clear();
      struct stat before {};
      ASSERT_EQ(::stat(path.c_str(), &before), 0);
      ASSERT_EQ(::chmod(path.c_str(), before.st_mode | others), 0);
      const auto cache = files.open();
      EXPECT_EQ(finds(*cache, 1), std::nullopt);
      ASSERT_EQ(files.warnings.size(), 1u);
      EXPECT_NE(files.warnings[0].find("\"" + path + "\"] is not used: others can write to it"), std::string::npos)
          << files.warnings[0];
      if (path != files.path_of(numbered_key(1))) {
        EXPECT_FALSE(cache->store(numbered_key(2), numbered_payload(2)));
        EXPECT_FALSE(cache->explain(numbered_key(1)));
        EXPECT_THROW(cache->prune(0), UserError);
      }
      EXPECT_TRUE(std::filesystem::exists(files.path_of(numbered_key(1))));
      ASSERT_EQ(::chmod(path.c_str(), before.st_mode), 0);
      EXPECT_EQ(finds(*files.open(), 1), true);
    }
  }
}

TEST(CompileCacheFaults, AnEntryThatOthersCanWriteIsReplacedByTheNextStore) {
  CacheCase files;
  const auto cache = files.open();
  ASSERT_TRUE(cache->store(numbered_key(1), numbered_payload(1)));
  ASSERT_EQ(::chmod(files.path_of(numbered_key(1)).c_str(), 0666), 0);
  EXPECT_EQ(finds(*cache, 1), std::nullopt);
  EXPECT_EQ(cache->counters().rejected, 1);
  EXPECT_TRUE(cache->store(numbered_key(1), numbered_payload(1)));
  EXPECT_EQ(finds(*cache, 1), true);
}

TEST(CompileCacheFaults, WhatAnotherUserOwnsIsNotLoaded) {
  CacheCase files;
  ASSERT_TRUE(files.open()->store(numbered_key(1), numbered_payload(1)));
  const std::string entry = files.path_of(numbered_key(1));
  for (const std::string& path : {files.root(), files.kind_folder(), entry}) {
    for (const bool opened : {false, true}) {
      if (opened && path != entry) continue;  // folders are not opened to be read from
      files.warnings.clear();
      const SharedDisk disk(path, !opened, opened);
      const auto cache = files.open(disk);
      EXPECT_EQ(finds(*cache, 1), std::nullopt);
      ASSERT_EQ(files.warnings.size(), 1u);
      EXPECT_NE(files.warnings[0].find("\"" + path + "\"] is not used: it belongs to user"), std::string::npos)
          << files.warnings[0];
      EXPECT_TRUE(std::filesystem::exists(entry));
      if (path != entry) {
        EXPECT_FALSE(cache->store(numbered_key(2), numbered_payload(2)));
      }
    }
  }
  EXPECT_EQ(files.files(), 1u);
}

TEST(CompileCacheFaults, PruneLeavesWhatAnotherUserOwns) {
  CacheCase files;
  ASSERT_TRUE(files.open()->store(numbered_key(1), numbered_payload(1)));
  const std::string entry = files.path_of(numbered_key(1));
  for (const bool opened : {false, true}) {
    const SharedDisk disk(entry, !opened, opened);
    const CachePruned pruned = files.open(disk)->prune(kDefaultCacheBytes);
    EXPECT_EQ(pruned.entries, 0);
    ASSERT_EQ(pruned.left.size(), 1u);
    EXPECT_NE(pruned.left[0].find("it belongs to user"), std::string::npos) << pruned.left[0];
  }
  EXPECT_EQ(finds(*files.open(), 1), true);
}

TEST(CompileCacheFaults, EntriesThatAreDamagedAreOneWarning) {
  CacheCase files;
  for (int number = 0; number < 5; ++number) {
    ASSERT_TRUE(files.open()->store(numbered_key(number), numbered_payload(number)));
    std::filesystem::resize_file(files.path_of(numbered_key(number)), 40);
  }
  const auto cache = files.open();
  for (int number = 0; number < 5; ++number) EXPECT_EQ(finds(*cache, number), std::nullopt);
  EXPECT_EQ(cache->counters().rejected, 5);
  EXPECT_EQ(files.warnings, std::vector<std::string>{
                                "[\"" + files.path_of(numbered_key(0)) +
                                "\"] is not an entry of the compile cache: it is cut short; others like it are not "
                                "reported"});
  EXPECT_EQ(files.files(), 0u);
}

TEST(CompileCacheFaults, WhicheverCallOfALookUpFailsTheAnswerIsRightAndTheEntryStays) {
  for (const int error : {EIO, EACCES, ENOMEM, EMFILE, ESTALE}) {
    CacheCase files;
    ASSERT_TRUE(files.open()->store(numbered_key(1), numbered_payload(1)));
    int misses = 0;
    for (int n = 1;; ++n) {
      files.warnings.clear();
      const FailingFileSystem disk(n, error, hasty_disk());
      const auto cache = files.open(disk);
      const std::optional<bool> found = finds(*cache, 1);
      const bool has_failed = disk.has_failed();
      EXPECT_NE(found, false) << n;
      EXPECT_EQ(files.warnings.size(), found ? 0u : 1u) << n;
      EXPECT_EQ(cache->counters().failures, found ? 0 : 1);
      EXPECT_EQ(finds(*files.open(), 1), true) << n;
      if (!has_failed) break;
      misses += found ? 0 : 1;
    }
    EXPECT_GE(misses, 5) << error;  // three checks, open, check, map
    EXPECT_EQ(files.files(), 1u);
  }
}

TEST(CompileCacheFaults, WhicheverCallOfAStoreFailsTheFolderStaysUsable) {
  for (const int error : {ENOSPC, EIO, EACCES, EROFS, EMFILE}) {
    int failures = 0;
    for (int n = 1;; ++n) {
      CacheCase files;
      FailingFileSystem disk(n, error, hasty_disk());
      disk.limit_transfers(300);
      bool stored = false;
      {
        const auto cache = files.open(disk);
        stored = cache->store(numbered_key(1), numbered_payload(1));
        EXPECT_LE(files.warnings.size(), 1u) << n;
        EXPECT_EQ(cache->counters().stores, stored ? 1 : 0);
        EXPECT_EQ(cache->counters().failures, stored ? 0 : 1);
      }
      failures += stored ? 0 : 1;
      const bool through = !disk.has_failed();
      const auto after = files.open();
      EXPECT_EQ(finds(*after, 1), stored ? std::optional(true) : std::nullopt) << n;
      EXPECT_EQ(files.files(), stored ? 1u : 0u) << n;
      EXPECT_TRUE(after->store(numbered_key(1), numbered_payload(1)));
      EXPECT_EQ(finds(*after, 1), true);
      if (through) break;
    }
    EXPECT_GE(failures, 8) << error;
  }
}

TEST(CompileCacheFaults, AnOldEntryStaysWhicheverCallOfItsReplacementFails) {
  for (int n = 1;; ++n) {
    CacheCase files;
    ASSERT_TRUE(files.open()->store(numbered_key(1), numbered_payload(1)));
    const FailingFileSystem disk(n, EIO, hasty_disk());
    const bool stored = files.open(disk)->store(numbered_key(1), numbered_payload(2));
    const auto entry = files.open()->find(numbered_key(1));
    ASSERT_TRUE(entry) << n;
    const std::vector<std::byte> wanted = numbered_payload(stored ? 2 : 1);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), entry->payload().begin(), entry->payload().end())) << n;
    EXPECT_EQ(files.files(), 1u) << n;
    if (!disk.has_failed()) break;
  }
}

TEST(CompileCacheFaults, WhicheverCallOfTheHousekeepingFailsItSaysSo) {
  int failures = 0;
  for (int n = 1;; ++n) {
    CacheCase files;
    for (const int number : {1, 2}) ASSERT_TRUE(files.open()->store(numbered_key(number), numbered_payload(number)));
    const FailingFileSystem disk(n, EIO, hasty_disk());
    const auto cache = files.open(disk);
    std::size_t good = 0;
    try {
      for (const CacheListing& entry : cache->list(CompileCache::Read::everything)) good += entry.problem.empty();
      cache->prune(kDefaultCacheBytes);
    } catch (const DeviceError&) {
      good = 0;
    }
    EXPECT_EQ(files.files(), 2u);
    if (!disk.has_failed()) {
      EXPECT_EQ(good, 2u);
      break;
    }
    failures += good < 2;
  }
  EXPECT_GE(failures, 8);
}

}  // namespace weft::compile_cache_faults_test
