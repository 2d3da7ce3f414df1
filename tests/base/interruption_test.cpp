#include "base/interruption.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/zip_archive.h"
#include "tests/base/temporary_folder.h"

namespace weft::interruption_test {

using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

void make_file(const std::string& path) { std::ofstream(path) << "x"; }

TEST(Interruption, RemovesWhatIsNotFinished) {
  const TemporaryFolder folder;
  const std::string made = folder / "made", inside = folder / "made/file", finished = folder / "finished";
  std::filesystem::create_directory(made);
  make_file(inside);
  make_file(finished);
  const auto interrupted = [&] {
    remove_unfinished_if_interrupted();
    { const UnfinishedPath until_here(finished); }
    const UnfinishedPath first(made), second(inside);
    ::raise(SIGTERM);
    ::_exit(0);
  };
  EXPECT_EXIT(interrupted(), KilledBySignal(SIGTERM), "");
  EXPECT_FALSE(std::filesystem::exists(made));
  EXPECT_TRUE(std::filesystem::exists(finished));
}

TEST(Interruption, WaitsForWorkThatCleansUpItself) {
  const TemporaryFolder folder;
  const std::string reached = folder / "reached";
  const auto interrupted = [&] {
    remove_unfinished_if_interrupted();
    {
      const InterruptionLater later;
      ::raise(SIGINT);
      if (InterruptionLater::is_pending()) make_file(reached);
    }
    ::_exit(0);
  };
  EXPECT_EXIT(interrupted(), KilledBySignal(SIGINT), "");
  EXPECT_TRUE(std::filesystem::exists(reached));
}

TEST(Interruption, LeavesIgnoredSignalsIgnored) {
  const auto ignoring = [] {
    std::signal(SIGHUP, SIG_IGN);
    remove_unfinished_if_interrupted();
    ::raise(SIGHUP);
    ::_exit(7);
  };
  EXPECT_EXIT(ignoring(), ExitedWithCode(7), "");
}

TEST(Interruption, LeavesNothingOfAnArchive) {
  const TemporaryFolder folder;
  const auto interrupted = [&] {
    remove_unfinished_if_interrupted();
    const InterruptionLater later;
    ::raise(SIGTERM);
    const std::vector<std::byte> bytes(1 << 20, std::byte{1});
    ZipWriter writer(folder / "archive");
    writer.add("member", bytes);
    EXPECT_THROW(writer.write(), UserError);
    ::_exit(std::filesystem::is_empty(folder.path()) ? 7 : 8);
  };
  EXPECT_EXIT(interrupted(), ExitedWithCode(7), "");
}

}  // namespace weft::interruption_test
