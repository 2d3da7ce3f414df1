// The program over a compile cache that others use, take away, fill and damage: always the same text.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/files.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "tests/cli/child_program.h"
#include "tests/sample_checkpoint.h"

namespace weft::cache_faults_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

class CacheFaults : public ::testing::Test {
 protected:
  CacheFaults() {
    testing::GgufBytes file = SampleCheckpoint(make_model_registry().find("llama", "test")).gguf(DType::q4_1);
    file.text("tokenizer.chat_template", "{% for message in messages %}{{ message.content }}{% endfor %}");
    write_then_rename(model_, file.bytes());
  }

  std::unique_ptr<ChildProgram> start(Words words, Environment environment = {}) const {
    words.insert(words.begin(), WEFT_PROGRAM);
    environment.emplace("WEFT_CACHE_ROOT", folder_ / "cache");
    return std::make_unique<ChildProgram>(words, environment);
  }
  Words complete() const { return {"complete", model_, "-p", "abc", "-n", "4", "--ignore-eos", "-t", "1"}; }
  Words chat() const { return {"chat", model_, "-n", "4", "--ignore-eos", "--json", "-t", "1"}; }
  // The output of a completion, which has to succeed.
  std::string text_of(ChildProgram& child, std::string* err = nullptr) const {
    const ProgramRun run = child.wait();
    EXPECT_EQ(run.status, 0) << run.err;
    if (err == nullptr) {
      EXPECT_EQ(run.err.find("no code can be generated") == std::string::npos, can_compile_rows()) << run.err;
      EXPECT_LE(std::count(run.err.begin(), run.err.end(), '\n'), can_compile_rows() ? 0 : 1) << run.err;
    } else {
      *err = run.err;
    }
    return run.out;
  }
  std::string text(std::string* err = nullptr) const { return text_of(*start(complete()), err); }
  std::string text_without_cache() const { return text_of(*start(complete(), {{"WEFT_DISABLE_COMPILE_CACHE", "1"}})); }

  // The files of a cache folder, by their relative paths.
  static std::map<std::string, std::string> files_of(const std::string& root) {
    std::map<std::string, std::string> files;
    if (!fs::exists(root)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(root))
      if (entry.is_regular_file())
        files[fs::relative(entry.path(), root)] = read_file(entry.path(), std::size_t{1} << 26);
    return files;
  }
  // Plans of two graphs, and their generated code if this build generates code.
  void expect_sound_entries() const {
    const ProgramRun verified = start({"cache", "verify", "--json"})->wait();
    EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
    const nlohmann::json report = nlohmann::json::parse(verified.out);
    EXPECT_TRUE(report["bad"].empty()) << verified.out;
    const auto files = files_of(folder_ / "cache");
    EXPECT_GE(files.size(), can_compile_rows() ? 3u : 2u);
    for (const auto& [name, bytes] : files) EXPECT_TRUE(name.ends_with(".weft")) << name;
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_ / "m.gguf";
};

TEST_F(CacheFaults, EightProcessesCompileOneModelAtOnceIntoAnEmptyFolder) {
  const std::string wanted = text_without_cache();
  EXPECT_TRUE(files_of(folder_ / "cache").empty());
  std::vector<std::unique_ptr<ChildProgram>> children;
  for (int i = 0; i < 8; ++i) children.push_back(start(complete()));
  for (const auto& child : children) EXPECT_EQ(text_of(*child), wanted);
  expect_sound_entries();
  const auto files = files_of(folder_ / "cache");
  EXPECT_EQ(text(), wanted);
  EXPECT_EQ(files_of(folder_ / "cache"), files);  // it was found
}

TEST_F(CacheFaults, TheFolderGoesWhileItIsUsed) {
  const std::string wanted = text();
  fs::remove_all(folder_ / "cache");
  EXPECT_EQ(text(), wanted);
  expect_sound_entries();
  for (int i = 0; i < 2; ++i) {  // while it is read, and while it is written
    const auto child = start(complete());
    for (std::error_code ignored; child->is_running();) fs::remove_all(folder_ / "cache", ignored);
    std::string warned;
    EXPECT_EQ(text_of(*child, &warned), wanted);
  }
  // If all entries exist, no one asks for them again.
  EXPECT_EQ(text(), wanted);
  const auto running = start(chat());
  const std::string answer = running->ask("abc");
  fs::remove_all(folder_ / "cache");
  EXPECT_NE(answer, "");
  EXPECT_NE(running->ask("abc"), "");
  EXPECT_EQ(running->wait().status, 0);
}

// No file may grow beyond a block. The system's error is then not that the disk is full, but it occurs at the same
// calls.
TEST_F(CacheFaults, NothingMoreCanBeWritten) {
  const std::string wanted = text_without_cache();
  Words words{"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh", WEFT_PROGRAM};
  for (const std::string& word : complete()) words.push_back(word);
  for (int i = 0; i < 2; ++i) {
    ChildProgram child(words, {{"WEFT_CACHE_ROOT", folder_ / "cache"}});
    std::string warned;
    EXPECT_EQ(text_of(child, &warned), wanted);
    EXPECT_NE(warned.find("File too large"), std::string::npos) << warned;
    for (const auto& [name, bytes] : files_of(folder_ / "cache")) EXPECT_LE(bytes.size(), 1024u) << name;
  }
  EXPECT_EQ(text(), wanted);
  expect_sound_entries();
}

// Nobody may write there, root neither: of it all rights are taken that go beyond those of its files.
TEST_F(CacheFaults, TheFolderMayOnlyBeRead) {
  Words words;
  if (::geteuid() == 0) {
    words = {"setpriv", "--bounding-set=-all", "--inh-caps=-all"};
    if (std::system("setpriv --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "for root this takes setpriv";
  }
  words.push_back(WEFT_PROGRAM);
  for (const std::string& word : complete()) words.push_back(word);
  const std::string wanted = text_without_cache(), root = folder_ / "cache", compiled = root + "/compile";
  const auto set_rights = [&](fs::perms rights) {
    std::vector<std::string> folders{root};
    for (const auto& entry : fs::recursive_directory_iterator(root))
      if (entry.is_directory()) folders.push_back(entry.path());
    for (const std::string& folder : folders) fs::permissions(folder, rights);
  };
  const auto expect_text = [&](const std::string& warning) {
    set_rights(fs::perms::owner_read | fs::perms::owner_exec);
    const auto before = files_of(root);
    ChildProgram child(words, {{"WEFT_CACHE_ROOT", root}});
    std::string warned;
    EXPECT_EQ(text_of(child, &warned), wanted);
    EXPECT_NE(warned.find(warning), std::string::npos) << warned;
    const int others = can_compile_rows() ? 0 : 1;  // that the compiler is missing
    EXPECT_EQ(std::count(warned.begin(), warned.end(), '\n'), others + (warning.empty() ? 0 : 1)) << warned;
    EXPECT_EQ(files_of(root), before);
    set_rights(fs::perms::owner_all);
  };
  fs::create_directories(root);
  expect_text("[\"" + compiled + "\"] cannot make the folder: Permission denied");
  fs::create_directories(compiled);
  fs::permissions(compiled, fs::perms::owner_all);
  expect_text("cannot make the folder: Permission denied");
  EXPECT_EQ(text(), wanted);
  expect_text("");  // existing entries are read
  fs::remove_all(compiled + "/plans");
  expect_text("[\"" + compiled + "/plans\"] cannot make the folder: Permission denied");
}

TEST_F(CacheFaults, EveryEntryIsCutShort) {
  const std::string wanted = text();
  const auto whole = files_of(folder_ / "cache");
  for (const int percent : {0, 1, 50, 99}) {
    for (const auto& [name, bytes] : whole)
      fs::resize_file(folder_ / "cache" + "/" + name, bytes.size() * static_cast<std::size_t>(percent) / 100);
    std::string warned;
    EXPECT_EQ(text(&warned), wanted) << percent;
    const auto is_named = [&](const auto& file) {
      return warned.find(file.first + "\"] is not an entry of the compile cache") != std::string::npos;
    };
    EXPECT_EQ(std::count_if(whole.begin(), whole.end(), is_named), 1) << warned;
    EXPECT_EQ(files_of(folder_ / "cache"), whole) << percent << ": it is stored again";
  }
}

TEST_F(CacheFaults, EntriesAreCutShortUnderARunningModel) {
  const std::string wanted = start(chat())->ask("abc");
  EXPECT_NE(wanted, "");
  const auto running = start(chat());  // overwrites the found entry
  EXPECT_EQ(running->ask("abc"), wanted);
  for (const auto& [name, bytes] : files_of(folder_ / "cache")) fs::resize_file(folder_ / "cache" + "/" + name, 0);
  const std::string again = running->ask("abc");
  EXPECT_NE(again.find("\"content\""), std::string::npos) << again;
  const ProgramRun ended = running->wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
}

TEST_F(CacheFaults, OtherFoldersAndEnvironmentsGiveTheSameBytes) {
  EXPECT_NE(text(), "");
  const auto wanted = files_of(folder_ / "cache");
  expect_sound_entries();
  const std::string elsewhere = folder_ / "some" + "/where";
  fs::create_directories(elsewhere);
  fs::copy_file(model_, elsewhere + "/other-name.gguf");
  Words words{"/usr/bin/env", "-C", elsewhere, WEFT_PROGRAM, "complete", "other-name.gguf"};
  for (const char* word : {"-p", "xyz", "-n", "1", "-t", "1"}) words.push_back(word);
  ChildProgram child(words, {{"WEFT_CACHE_ROOT", elsewhere + "/cache"},
                             {"HOME", elsewhere},
                             {"LANG", "tr_TR.UTF-8"},
                             {"TZ", "Asia/Tokyo"},
                             {"OMP_NUM_THREADS", "7"},
                             {"TMPDIR", elsewhere}});
  EXPECT_NE(text_of(child), "");
  EXPECT_EQ(files_of(elsewhere + "/cache"), wanted);
}

// The key is found again, whatever else is in the environment.
TEST_F(CacheFaults, NoVariableOfTheEnvironmentMakesAMiss) {
  const Words words{"bench", "startup", model_, "--once", "-t", "1"};
  EXPECT_FALSE(nlohmann::json::parse(start(words)->wait().out)["compile_ms"].empty());
  const auto files = files_of(folder_ / "cache");
  std::mt19937 random(9);
  const auto text_of_length = [&](std::size_t length, const std::string& letters) {
    std::string made;
    while (made.size() < length) made += letters[random() % letters.size()];
    return made;
  };
  constexpr int kEnvironments = 1000, kAtOnce = 2;
  for (int begun = 0; begun < kEnvironments; begun += kAtOnce) {
    std::vector<std::unique_ptr<ChildProgram>> children;
    for (int i = 0; i < kAtOnce; ++i) {
      Environment environment;
      for (const char* name : {"HOME", "USER", "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME", "CXX", "CC",
                               "CFLAGS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONPATH", "SHELL", "TERM"})
        if (random() % 2 == 0) environment[name] = text_of_length(random() % 20, "abz019/.:-_=, ");
      for (std::size_t others = random() % 30; others > 0; --others)
        environment["X" + text_of_length(1 + random() % 8, "ABC_012")] = text_of_length(random() % 60, "ab/=1 \n");
      children.push_back(start(words, environment));
    }
    for (const auto& child : children) {
      const ProgramRun run = child->wait();
      ASSERT_EQ(run.status, 0) << run.err;
      EXPECT_TRUE(nlohmann::json::parse(run.out)["compile_ms"].empty()) << run.out;
    }
  }
  EXPECT_EQ(files_of(folder_ / "cache"), files);
}

// As the system reports it, which knows better than the loader.
TEST_F(CacheFaults, AWarmStartHasTheCompilerNotMapped) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  for (const bool is_warm : {false, true}) {
    const auto running = start(chat());
    EXPECT_NE(running->ask("abc"), "");
    const std::string maps = running->maps();
    EXPECT_NE(maps.find("libc.so"), std::string::npos);
    EXPECT_EQ(maps.find("libweft_llvm.so") == std::string::npos, is_warm);
    EXPECT_EQ(maps.find("libLLVM") == std::string::npos, is_warm);
    EXPECT_EQ(running->wait().status, 0);
  }
}

}  // namespace weft::cache_faults_test
