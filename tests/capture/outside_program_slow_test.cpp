// examples/ as a project outside the tree, with an installation of `make install`.

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/base/temporary_folder.h"
#include "tests/command_run.h"

namespace weft::outside_program_test {

#ifdef WEFT_CMAKE

namespace fs = std::filesystem;

// An installed Weft, and the examples in another folder. The installation is moved before it is used, because its files
// must not name a folder of the build or the original prefix.
class OutsideProgram : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    const CommandRun install =
        run_command(fmt::format("{} --install {} --prefix {}", WEFT_CMAKE, WEFT_BUILD_FOLDER, *folder_ / "made"));
    ASSERT_EQ(install.status, 0) << install.output;
    fs::rename(*folder_ / "made", *folder_ / "installed");
    fs::copy(fmt::format("{}/examples", WEFT_SOURCE_ROOT), *folder_ / "examples");
  }
  static void TearDownTestSuite() { folder_.reset(); }

  // Unoptimized, as that is quick; its own lines are named as they are in the tree.
  static CommandRun configure(const std::string& more = "") {
    return run_command(fmt::format(
        "{0} -G Ninja -S {1}/examples -B {1}/build -DCMAKE_PREFIX_PATH={1}/installed -DCMAKE_CXX_COMPILER={2} "
        "-DCMAKE_CXX_FLAGS='-O0 -Wall -Wextra -Werror -fmacro-prefix-map={1}/=' {3}",
        WEFT_CMAKE, folder_->path(), WEFT_CXX_COMPILER, more));
  }

  static std::unique_ptr<TemporaryFolder> folder_;
};

std::unique_ptr<TemporaryFolder> OutsideProgram::folder_;

TEST_F(OutsideProgram, PrintsWhatTheExampleInTheTreePrints) {
  const CommandRun configured = configure();
  ASSERT_EQ(configured.status, 0) << configured.output;
  const CommandRun built = run_command(fmt::format("{} --build {}/build", WEFT_CMAKE, folder_->path()));
  ASSERT_EQ(built.status, 0) << built.output;
  const CommandRun outside = run_command(folder_->path() + "/build/capture"), inside = run_command(WEFT_EXAMPLE);
  EXPECT_EQ(outside.status, 0);
  EXPECT_GT(inside.output.size(), 1000U);
  EXPECT_EQ(outside.output, inside.output) << "whether code is generated included, which needs libweft_llvm.so";
}

TEST_F(OutsideProgram, NoInstalledFileNamesTheTree) {
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(*folder_ / "installed")) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cmake" && extension != ".def") continue;
    ++files;
    const std::string text = read_file(entry.path(), 1 << 20);
    EXPECT_EQ(text.find(WEFT_SOURCE_ROOT), std::string::npos) << entry.path();
    EXPECT_EQ(text.find(folder_->path()), std::string::npos) << entry.path();
  }
  EXPECT_GE(files, 100);
}

TEST_F(OutsideProgram, IsRefusedToAnotherCompiler) {
  fs::copy(*folder_ / "installed", *folder_ / "other", fs::copy_options::recursive);
  const fs::recursive_directory_iterator files(*folder_ / "other");
  const auto config = std::find_if(begin(files), end(files), [](const fs::directory_entry& file) {
    return file.path().filename() == "weft-config.cmake";
  });
  ASSERT_NE(config, end(files));
  std::string text = read_file(config->path(), 1 << 20);
  const std::string used = fmt::format("GNU {}", __GNUC__), other = "GNU 1";
  int places = 0;
  for (std::size_t at = text.find(used); at != std::string::npos; at = text.find(used, at + 1), ++places)
    text.replace(at, used.size(), other);
  EXPECT_EQ(places, 2);
  write_then_rename(config->path(), text);
  const CommandRun run = configure(fmt::format("-B {0}/refused -DCMAKE_PREFIX_PATH={0}/other", folder_->path()));
  EXPECT_NE(run.status, 0);
  EXPECT_NE(run.output.find("[weft] wanted the C++ compiler that it was built with, GNU 1"), std::string::npos)
      << run.output;
}

#else

TEST(OutsideProgram, PrintsWhatTheExampleInTheTreePrints) {
  GTEST_SKIP() << "a program outside does not link what a sanitizer is built into";
}

#endif

}  // namespace weft::outside_program_test
