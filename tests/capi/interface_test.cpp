// All that a C compiler needs for weft.h: the header, the shared library, the example.

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/version.h"
#include "builtin/models.h"
#include "capi/weft.h"
#include "tests/command_run.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::interface_test {

// The folder with all that C programs need, as `make install` writes it.
const TemporaryFolder& prefix() {
  static const TemporaryFolder folder;
  static const bool once = [] {
    std::filesystem::create_directories(folder / "include/weft");
    for (const char* header : {"src/capi/weft.h", "include/weft/weft_plugin.h"})
      std::filesystem::copy(fmt::format("{}/{}", WEFT_SOURCE_ROOT, header), folder / "include/weft");
#ifdef WEFT_SHARED_LIBRARY
    std::filesystem::create_directories(folder / "lib");
    const std::filesystem::path library = WEFT_SHARED_LIBRARY;
    std::filesystem::create_symlink(library, folder / ("lib/" + library.filename().string()));
    std::filesystem::create_symlink(library, folder / "lib/libweft.so");
#endif
    return true;
  }();
  (void)once;
  return folder;
}

TEST(CInterface, HeaderIsPlainC99AndCPlusPlusWithoutAWarning) {
  const std::string plain = prefix() / "plain.c", both = prefix() / "both.c";
  std::ofstream(plain) << "#include <weft/weft.h>\nint main(void) { return (int)weft_abi_version(); }\n";
  std::ofstream(both) << "#include <weft/weft_plugin.h>\n#include <weft/weft.h>\nint main(void) { return 0; }\n";
  const std::string flags = fmt::format("-Wall -Wextra -pedantic -Werror -I{}/include -fsyntax-only", prefix().path());
  EXPECT_EQ(run_command(fmt::format("cc -std=c99 {} {}", flags, plain)).output, "");
  EXPECT_EQ(run_command(fmt::format("c++ -std=c++11 -x c++ {} {}", flags, plain)).output, "");
  EXPECT_EQ(run_command(fmt::format("cc -std=c11 {} {}", flags, both)).output, "") << "beside the plugins' header";
}

TEST(CInterface, SaysItsVersions) {
  EXPECT_EQ(weft_abi_version(), WEFT_ABI_VERSION);
  EXPECT_STREQ(weft_version(), kVersion);
}

TEST(CInterface, StatusesAreTheProgramsExitStatuses) {
  weft_context* context = nullptr;
  const weft_option option{"thread", "2"};
  EXPECT_EQ(weft_context_create(&option, 1, &context, nullptr), run_weft({"info", "--thread", "2"}).status);
}

#ifdef WEFT_SHARED_LIBRARY

TEST(SharedLibrary, ShowsNothingButTheInterface) {
  const CommandRun run = run_command(fmt::format("nm -D --defined-only --format=posix {}", WEFT_SHARED_LIBRARY));
  ASSERT_EQ(run.status, 0) << run.output;
  std::istringstream lines(run.output);
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) names.insert(line.substr(0, line.find(' ')));
  std::set<std::string> declared;
  std::ifstream header(prefix() / "include/weft/weft.h");
  for (std::string line; std::getline(header, line);)
    if (line.starts_with("WEFT_API ")) {
      const std::size_t end = line.find('('), begin = line.find_last_of(" *", end) + 1;
      declared.insert(line.substr(begin, end - begin));
    }
  EXPECT_GE(declared.size(), 20U);
  EXPECT_EQ(names, declared);
}

TEST(SharedLibrary, CarriesTheVersionOfTheHeaderInItsName) {
  EXPECT_EQ(std::filesystem::path(WEFT_SHARED_LIBRARY).filename(), fmt::format("libweft.so.{}", WEFT_ABI_VERSION));
}

class ExampleInC : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const CommandRun build =
        run_command(fmt::format("make -s -C {}/examples/c_complete PREFIX={} OUT={} CFLAGS=-Werror", WEFT_SOURCE_ROOT,
                                prefix().path(), prefix() / "complete"));
    ASSERT_EQ(build.status, 0) << build.output;
    SampleCheckpoint(make_model_registry().find("llama", "the test")).write_gguf(prefix(), "tiny.gguf", DType::q4_1);
  }
  static CommandRun run(const std::string& words, const std::string& streams = "") {
    return run_command(fmt::format("{{ {} {} {}; }}", prefix() / "complete", words, streams));
  }
  static std::string model() { return prefix() / "tiny.gguf"; }
};

TEST_F(ExampleInC, AnswersAsTheProgramDoes) {
  const ProgramRun program = run_weft({"complete", model(), "-p", "Once upon a time", "-n", "32", "-t", "2"});
  ASSERT_EQ(program.status, 0) << program.err;
  for (const char* options : {"threads=2", "threads=2 ir-op-priority.rms_norm=reference,cpu", "enforce-eager"}) {
    const CommandRun example = run(fmt::format("{} 'Once upon a time' {}", model(), options), "2>/dev/null");
    EXPECT_EQ(example.status, 0);
    EXPECT_EQ(example.output, program.out) << options;
  }
}

// The program and the library are other files, but of one build.
TEST_F(ExampleInC, OpensWhatTheProgramCompiled) {
  const std::string artifact = prefix() / "tiny.weft";
  const auto program = std::filesystem::path(WEFT_SHARED_LIBRARY).parent_path() / "weft";
  const CommandRun compiled = run_command(fmt::format("{} compile {} -o {} -t 2", program.string(), model(), artifact));
  ASSERT_EQ(compiled.status, 0) << compiled.output;
  const CommandRun wanted = run(model() + " 'Once upon a time' threads=2", "2>/dev/null");
  const CommandRun came = run(artifact + " 'Once upon a time' threads=2", "2>/dev/null");
  EXPECT_EQ(came.status, 0);
  EXPECT_EQ(came.output, wanted.output);
}

TEST_F(ExampleInC, EndsWithTheStatusAndTheMessage) {
  EXPECT_EQ(run("").status, 2);
  const CommandRun unknown = run(model() + " Hi thread=2");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.output.find("did you mean \"threads\"?"), std::string::npos) << unknown.output;
  EXPECT_EQ(run("/nonexistent/model.gguf Hi").status, 2);
}

#endif

}  // namespace weft::interface_test
