#include "base/files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/base/failing_file_system.h"
#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::files_test {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The message for any kind of error; a device's error is distinguished.
std::string failure_of(const std::function<void()>& action) {
  try {
    return message_of(action);
  } catch (const DeviceError& error) {
    return std::string("device: ") + error.what();
  }
}

EnvironmentLookup environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

std::size_t resident_pages(const MappedFile& file) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool ours = false;
  while (std::getline(maps, line)) {
    if (line.find(file.path()) != std::string::npos) ours = true;
    if (ours && line.starts_with("Rss:")) return std::stoul(line.substr(4)) * 1024 / 4096;
  }
  return 0;
}

TEST(MappedFile, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string bytes("a\0b\xff\n", 5);
  write_then_rename(folder / "file", bytes);
  const MappedFile file(folder / "file");
  EXPECT_EQ(text_of(file), bytes);
  EXPECT_EQ(file.size(), 5u);
  EXPECT_EQ(file.path(), folder / "file");
}

TEST(MappedFile, MovesWithItsBytes) {
  const TemporaryFolder folder;
  write_then_rename(folder / "one", "first");
  write_then_rename(folder / "two", "second");
  MappedFile one(folder / "one");
  MappedFile two(folder / "two");
  one = std::move(two);
  EXPECT_EQ(text_of(one), "second");
  MappedFile three(std::move(one));
  EXPECT_EQ(text_of(three), "second");
  EXPECT_EQ(one.size(), 0u);
  three = std::move(three);
  EXPECT_EQ(text_of(three), "second");
}

TEST(MappedFile, RefusesWhatIsNoFileWithContent) {
  const TemporaryFolder folder;
  std::ofstream(folder / "empty").close();
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(failure_of([&] { MappedFile(folder / "missing"); }),
            "[\"" + folder.path() + "/missing\"] cannot open: no such file or folder");
  EXPECT_EQ(failure_of([&] { MappedFile(folder.path()); }),
            "[\"" + folder.path() + "\"] wanted a file, but it is a folder");
  EXPECT_EQ(failure_of([&] { MappedFile(folder / "empty"); }), "[\"" + folder.path() + "/empty\"] is empty");
  EXPECT_EQ(failure_of([&] { MappedFile(folder / "pipe"); }),
            "[\"" + folder.path() + "/pipe\"] wanted a regular file, but it is a device or pipe");
  EXPECT_NE(failure_of([&] { MappedFile(folder / "empty" + "/below"); }).find("Not a directory"), std::string::npos);
  EXPECT_EQ(failure_of([&] { MappedFile(""); }), "[file] wanted a path, but it is empty");
  EXPECT_EQ(failure_of([&] { MappedFile(std::string("a\0b", 3)); }),
            "[\"a\\u{0}b\"] is not a path: it holds a null byte");
}

TEST(MappedFile, DroppedPagesLeaveMemoryAndReadTheSameAgain) {
  const TemporaryFolder folder;
  std::string bytes(4 << 20, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 4096);
  write_then_rename(folder / "file", bytes);
  const MappedFile file(folder / "file");
  file.will_need(0, file.size());
  EXPECT_EQ(std::memcmp(file.bytes().data(), bytes.data(), bytes.size()), 0);
  EXPECT_GE(resident_pages(file), 1000u);
  file.drop(0, 2 << 20);
  EXPECT_LE(resident_pages(file), 600u);
  file.drop(4096 * 3 + 5, static_cast<std::size_t>(-1));
  EXPECT_EQ(resident_pages(file), 0u);
  file.drop(file.size(), 1);
  file.drop(static_cast<std::size_t>(-1), static_cast<std::size_t>(-1));
  EXPECT_EQ(std::memcmp(file.bytes().data(), bytes.data(), bytes.size()), 0);
}

TEST(MappedFile, FailsCleanlyWhicheverCallFails) {
  const TemporaryFolder folder;
  write_then_rename(folder / "file", "content");
  int failures = 0;
  for (int n = 1;; ++n) {
    const FailingFileSystem file_system(n, ENOMEM);
    const std::string message = failure_of([&] { MappedFile(folder / "file", file_system); });
    if (!file_system.has_failed()) {
      EXPECT_EQ(message, "");
      break;
    }
    if (message.empty()) continue;  // the first check is only a convenience
    EXPECT_NE(message.find("device: "), std::string::npos) << message;
    EXPECT_NE(message.find("Cannot allocate memory"), std::string::npos) << message;
    ++failures;
  }
  EXPECT_EQ(failures, 4);
}

TEST(ReadFile, ReadsFilesAndPipesUpToTheBound) {
  const TemporaryFolder folder;
  write_then_rename(folder / "file", "0123456789");
  std::ofstream(folder / "empty").close();
  EXPECT_EQ(read_file(folder / "file", 10), "0123456789");
  EXPECT_EQ(read_file(folder / "empty", 0), "");
  EXPECT_EQ(failure_of([&] { read_file(folder / "file", 9); }),
            "[\"" + folder.path() + "/file\"] wanted at most 9 bytes, but it has 10");
  EXPECT_NE(read_file("/proc/self/status", 1 << 20), "");

  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::string long_text(200000, 'x');
  std::thread writer([&] { std::ofstream(folder / "pipe") << long_text; });
  EXPECT_EQ(read_file(folder / "pipe", 1 << 20), long_text);
  writer.join();
  EXPECT_NE(failure_of([&] { read_file("/dev/zero", 1000); }).find("wanted at most 1000 bytes, but it has at least"),
            std::string::npos);
}

TEST(ReadFile, FailsCleanlyWhicheverCallFailsAndTakesShortReads) {
  const TemporaryFolder folder;
  write_then_rename(folder / "file", "0123456789");
  for (int n = 1;; ++n) {
    FailingFileSystem file_system(n, EIO);
    file_system.limit_transfers(3);
    std::string content;
    const std::string message = failure_of([&] { content = read_file(folder / "file", 100, file_system); });
    if (!file_system.has_failed()) {
      EXPECT_EQ(content, "0123456789");
      EXPECT_GE(n, 8);
      break;
    }
    EXPECT_NE(message.find("device: "), std::string::npos) << n << message;
  }
}

TEST(ReadFile, RepeatsInterruptedCalls) {
  const TemporaryFolder folder;
  write_then_rename(folder / "file", "0123456789");
  for (int n = 2; n <= 5; ++n) {
    if (n == 3) continue;  // asking for the size is never interrupted
    const FailingFileSystem file_system(n, EINTR);
    EXPECT_EQ(read_file(folder / "file", 100, file_system), "0123456789") << n;
  }
}

TEST(WriteThenRename, ReplacesTheFileAndLeavesNothingElse) {
  const TemporaryFolder folder;
  write_then_rename(folder / "file", "old");
  write_then_rename(folder / "file", "new content");
  EXPECT_EQ(read_file(folder / "file", 100), "new content");
  write_then_rename(folder / "file", "");
  EXPECT_EQ(read_file(folder / "file", 100), "");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
}

TEST(WriteThenRename, OldFileStaysAndNoOtherIsLeftWhicheverCallFails) {
  for (const int error : {ENOSPC, EIO, EACCES, EROFS}) {
    for (int n = 1;; ++n) {
      const TemporaryFolder folder;
      write_then_rename(folder / "file", "old");
      FailingFileSystem file_system(n, error);
      file_system.limit_transfers(2);
      const std::string message = failure_of([&] { write_then_rename(folder / "file", "new!", file_system); });
      EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
      if (!file_system.has_failed()) {
        EXPECT_EQ(message, "");
        EXPECT_EQ(read_file(folder / "file", 100), "new!");
        EXPECT_EQ(n, 8);  // inspect, resolve, create, write, write, sync, rename
        break;
      }
      EXPECT_EQ(read_file(folder / "file", 100), "old");
      EXPECT_EQ(message.starts_with("device: "), error == EIO) << message;
      EXPECT_NE(message.find("cannot write"), std::string::npos) << message;
    }
  }
}

TEST(WriteThenRename, DiskFullIsTheUsersErrorThatSaysSo) {
  const TemporaryFolder folder;
  const FailingFileSystem file_system(3, ENOSPC);
  const std::string message = failure_of([&] { write_then_rename(folder / "file", "new", file_system); });
  EXPECT_EQ(message, "[\"" + folder.path() + "/file\"] cannot write: No space left on device");
  EXPECT_TRUE(folder.names().empty());
}

TEST(WriteThenRename, StepsOverWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  const std::string left = ".weft-" + std::to_string(::getpid()) + "-0.tmp";
  std::ofstream(folder / left) << "left";
  write_then_rename(folder / "file", "new");
  EXPECT_EQ(read_file(folder / "file", 100), "new");
  EXPECT_EQ(read_file(folder / left, 100), "left");
}

TEST(WriteThenRename, FollowsLinksAndWritesIntoDevices) {
  const TemporaryFolder folder;
  write_then_rename(folder / "real", "old");
  ASSERT_EQ(::symlink("real", (folder / "link").c_str()), 0);
  write_then_rename(folder / "link", "new");
  EXPECT_EQ(read_file(folder / "real", 100), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  write_then_rename("/dev/null", "gone");
  struct stat status;
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_NE(failure_of([] { write_then_rename("/dev/full", "x"); }).find("cannot write"), std::string::npos);
}

TEST(WriteThenRename, RefusesFoldersAndMissingFolders) {
  const TemporaryFolder folder;
  EXPECT_EQ(failure_of([&] { write_then_rename(folder.path(), "x"); }),
            "[\"" + folder.path() + "\"] cannot write: it is a folder");
  EXPECT_NE(failure_of([&] { write_then_rename(folder / "missing" + "/file", "x"); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(failure_of([&] { write_then_rename(folder / std::string(300, 'n'), "x"); }).find("File name too long"),
            std::string::npos);
  write_then_rename(folder / std::string(255, 'n'), "the longest name there is");
}

TEST(WriteThenRename, ConcurrentWritersOfOnePathLeaveOneWholeFile) {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (char letter = 'a'; letter < 'e'; ++letter) {
    writers.emplace_back([&folder, letter] {
      for (int round = 0; round < 20; ++round) write_then_rename(folder / "file", std::string(5000, letter));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string content = read_file(folder / "file", 10000);
  EXPECT_EQ(content, std::string(5000, content.at(0)));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
}

TEST(MakeFolders, MakesAllThatAreMissing) {
  const TemporaryFolder folder;
  make_folders(folder / "a/b//c/");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  make_folders(folder / "a/b");
  write_then_rename(folder / "a/file", "x");
  EXPECT_NE(failure_of([&] { make_folders(folder / "a/file/b"); }).find("cannot make the folder"), std::string::npos);
  const FailingFileSystem broken(1, EIO);
  make_folders(folder.path(), broken);  // "/tmp" exists, although the call fails
  EXPECT_NE(failure_of([&] { make_folders(folder / "new", FailingFileSystem(5, EIO)); }).find("device"),
            std::string::npos);
}

TEST(PrivateFiles, AreForTheirOwnerAloneAndComeWhole) {
  const TemporaryFolder folder;
  const mode_t mask = ::umask(0);
  make_private_folder(folder / "a/b//");
  make_private_folder(folder / "a/b");
  const std::string first = "first, ", second = "second";
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(first)), {}, std::as_bytes(std::span(second))};
  write_private_then_rename(folder / "a/b", "file", parts);
  ::umask(mask);
  EXPECT_EQ(read_file(folder / "a/b/file", 100), "first, second");
  EXPECT_EQ(file_status(folder / "a").mode, 0777u);
  EXPECT_EQ(file_status(folder / "a/b").mode, 0700u);
  EXPECT_EQ(file_status(folder / "a/b/file").mode, 0600u);
  EXPECT_EQ(folder_names(folder / "a/b"), std::vector<std::string>{"file"});
}

TEST(PrivateFiles, NothingIsLeftWhicheverCallOfAWriteFails) {
  const TemporaryFolder folder;
  const std::string text = "content";
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  for (int n = 1;; ++n) {
    const FailingFileSystem file_system(n, ENOSPC);
    const std::string message =
        failure_of([&] { write_private_then_rename(folder.path(), "file", parts, file_system); });
    if (message.empty()) {
      EXPECT_EQ(n, 5);  // create, write, sync, rename
      break;
    }
    EXPECT_EQ(message, "[\"" + folder.path() + "\"] cannot write: No space left on device");
    EXPECT_TRUE(folder.names().empty());
  }
}

TEST(FileStatus, TellsKindSizeOwnerModeAndTime) {
  const TemporaryFolder folder;
  write_then_rename(folder / "file", "12345");
  ASSERT_EQ(::chmod((folder / "file").c_str(), 0640), 0);
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 7}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder / "file").c_str(), times, 0), 0);
  FileStatus status = file_status(folder / "file");
  EXPECT_EQ(status.kind, FileKind::regular);
  EXPECT_EQ(status.bytes, 5);
  EXPECT_EQ(status.owner, ::geteuid());
  EXPECT_EQ(status.mode, 0640u);
  EXPECT_EQ(status.modified, 1'000'000'000'007);
  EXPECT_EQ(MappedFile(folder / "file").status().modified, 1'000'000'000'007);
  ASSERT_EQ(host_file_system().touch(folder / "file"), 0);
  EXPECT_GT(file_status(folder / "file").modified, 1'000'000'000'007);
  EXPECT_EQ(file_status(folder.path()).kind, FileKind::folder);
  EXPECT_EQ(file_status(folder / "missing").kind, FileKind::missing);
  EXPECT_NE(failure_of([&] { file_status(folder / "file/below"); }).find("Not a directory"), std::string::npos);
}

TEST(FolderNames, AreSortedAndComplete) {
  const TemporaryFolder folder;
  for (const char* name : {"b", ".hidden", "a"}) write_then_rename(folder / name, "x");
  EXPECT_EQ(folder_names(folder.path()), (std::vector<std::string>{".hidden", "a", "b"}));
  EXPECT_NE(failure_of([&] { folder_names(folder / "missing"); }).find("No such file"), std::string::npos);
  EXPECT_TRUE(is_temporary_name(".weft-12-0.tmp"));
  EXPECT_FALSE(is_temporary_name("file.tmp") || is_temporary_name(".weft-12"));
}

TEST(CacheFolder, TakesTheFirstPlaceThatIsSet) {
  EXPECT_EQ(cache_folder(environment_of({{"WEFT_CACHE_ROOT", "/w"}, {"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}})), "/w");
  EXPECT_EQ(cache_folder(environment_of({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}})), "/x/weft");
  EXPECT_EQ(cache_folder(environment_of({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}})), "/h/.cache/weft");
  EXPECT_EQ(cache_folder(environment_of({{"WEFT_CACHE_ROOT", ""}, {"HOME", "/h"}})), "/h/.cache/weft");
  EXPECT_EQ(models_folder(environment_of({{"WEFT_CACHE_ROOT", "/w"}, {"HOME", "/h"}})), "/h/.cache/weft/models");
  EXPECT_EQ(models_folder(environment_of({{"WEFT_MODELS_ROOT", "/m"}, {"HOME", "/h"}})), "/m");
  EXPECT_EQ(models_folder(environment_of({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}})), "/x/weft/models");
  EXPECT_THROW(models_folder(environment_of({})), UserError);
  EXPECT_THROW(cache_folder(environment_of({})), UserError);
  EXPECT_THROW(cache_folder(environment_of({{"HOME", ""}})), UserError);
  EXPECT_EQ(message_of([] { cache_folder(environment_of({})); }),
            "[cache] wanted a folder in WEFT_CACHE_ROOT, XDG_CACHE_HOME or HOME, but none of them is set");
  const std::string message = message_of([] { cache_folder(environment_of({{"XDG_CACHE_HOME", "near"}})); });
  EXPECT_NE(message.find("XDG_CACHE_HOME is the relative path \"near\""), std::string::npos) << message;
}

TEST(Environment, ProcessEnvironmentSeesVariables) {
  ::setenv("WEFT_TEST_VARIABLE", "value=1", 1);
  ::setenv("WEFT_TEST_ANOTHER", "", 1);
  EXPECT_EQ(process_environment()("WEFT_TEST_VARIABLE"), "value=1");
  EXPECT_EQ(process_environment()("WEFT_TEST_ANOTHER"), "");
  EXPECT_EQ(process_environment()("WEFT_TEST_MISSING"), std::nullopt);
  EXPECT_EQ(process_environment_names("WEFT_TEST_"),
            (std::vector<std::string>{"WEFT_TEST_ANOTHER", "WEFT_TEST_VARIABLE"}));
  ::unsetenv("WEFT_TEST_VARIABLE");
  ::unsetenv("WEFT_TEST_ANOTHER");
}

}  // namespace weft::files_test
