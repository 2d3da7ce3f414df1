#include "quantize/output_folder.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/base/failing_file_system.h"
#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::output_folder_test {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) { return read_file(path, 1 << 10); }

TEST(OutputFolder, MakesTheFoldersOfItsFiles) {
  const TemporaryFolder folder;
  {
    OutputFolder output(folder / "a/b");
    EXPECT_TRUE(folder.names().empty());  // nothing is made before the first file
    output.write("x.json", "{}");
    output.write("additional_chat_templates/tool_use.jinja", "tools");
    output.keep();
  }
  EXPECT_EQ(text_of(folder / "a/b/x.json"), "{}");
  EXPECT_EQ(text_of(folder / "a/b/additional_chat_templates/tool_use.jinja"), "tools");
}

TEST(OutputFolder, LeavesNothingUnlessItIsKept) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "empty");
  for (const char* name : {"new", "new/deep/", "empty", "empty/deep"}) {
    {
      OutputFolder output(folder / name);
      output.write("x.json", "{}");
      output.write("sub/y.json", "{}");
      EXPECT_TRUE(fs::exists(fs::path(folder / name) / "sub/y.json"));
    }
    EXPECT_EQ(folder.names(), std::vector<std::string>{"empty"}) << name;
    EXPECT_TRUE(fs::is_empty(folder / "empty")) << name;
  }
}

TEST(OutputFolder, LeavesTheFilesOfOthers) {
  const TemporaryFolder folder;
  {
    OutputFolder output(folder / "out");
    output.write("x.json", "{}");
    std::ofstream(folder / "out/notes") << "mine";
  }
  EXPECT_EQ(text_of(folder / "out/notes"), "mine");
  EXPECT_FALSE(fs::exists(folder / "out/x.json"));
}

TEST(OutputFolder, RefusesWhatIsNoEmptyFolderAndNamesWhatIsThere) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name) { return message_of([&] { check_output_folder(folder / name); }); };
  EXPECT_EQ(refusal("none"), "");
  fs::create_directories(folder / "out");
  EXPECT_EQ(refusal("out"), "");
  std::ofstream(folder / "out/.hidden") << "x";
  EXPECT_EQ(missing_part(refusal("out"), {"[-o] must be a new or empty folder", folder / "out", "\".hidden\""}), "");
  EXPECT_EQ(missing_part(refusal("out/.hidden"), {"[-o] must be a new or empty folder", "is a file"}), "");
  EXPECT_EQ(missing_part(refusal("out/.hidden/x"), {"Not a directory"}), "");
  EXPECT_THROW(OutputFolder(folder / "out"), UserError);
  EXPECT_EQ(text_of(folder / "out/.hidden"), "x");
}

TEST(OutputFolder, WhicheverCallFailsNothingIsLeft) {
  int failures = 0;
  for (int n = 1;; ++n) {
    const TemporaryFolder folder;
    const FailingFileSystem disk(n, ENOSPC);
    const std::string message = message_of([&] {
      OutputFolder output(folder / "a/out", disk);
      output.write("x.json", "{}");
      output.write("sub/y.json", "{}");
      output.keep();
    });
    if (!disk.has_failed()) {
      EXPECT_EQ(message, "");
      EXPECT_TRUE(fs::exists(folder / "a/out/sub/y.json"));
      break;
    }
    // A file system may report that an existing parent cannot be made; that is not a failure.
    if (message.empty()) continue;
    ++failures;
    EXPECT_TRUE(folder.names().empty()) << n << ": " << message;
  }
  EXPECT_GE(failures, 10);
}

}  // namespace weft::output_folder_test
