#include "base/shared_library.h"

#include <filesystem>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/first_time_work.h"
#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::shared_library_test {

// A part of the C library, which every program has.
constexpr const char* kThere = "libm.so.6";

TEST(SharedLibrary, FindsFunctionsByName) {
  std::string problem;
  const auto library = SharedLibrary::open(kThere, problem);
  ASSERT_TRUE(library) << problem;
  EXPECT_EQ(problem, "");
  auto* root = library->find<double(double)>("sqrt");
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root(49), 7);
  EXPECT_EQ(library->find<double(double)>("weft_has_no_such_function"), nullptr);
}

TEST(SharedLibrary, SaysWhyItCannotBeOpened) {
  std::string problem;
  EXPECT_FALSE(SharedLibrary::open("libweft_nowhere.so", problem));
  EXPECT_NE(problem.find("libweft_nowhere.so"), std::string::npos) << problem;
}

// Dlopen would end the process on a file that is cut, and wait for the other end of a pipe.
TEST(SharedLibrary, RefusesWhatIsNoWholeFile) {
  const TemporaryFolder folder;
  const auto problem_of = [&](const std::string& name) {
    std::string problem;
    EXPECT_FALSE(SharedLibrary::open(folder / name, problem)) << name;
    return problem;
  };
  Dl_info here;
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "puts"), &here), 0);
  std::filesystem::copy_file(here.dli_fname, folder / "cut.so");
  std::filesystem::resize_file(folder / "cut.so", 8192);
  EXPECT_EQ(problem_of("cut.so"), folder / "cut.so: it ends before a part that its header names");
  std::filesystem::resize_file(folder / "cut.so", 0);
  EXPECT_NE(problem_of("cut.so").find("file too short"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder / "pipe.so").c_str(), 0600), 0);
  EXPECT_EQ(problem_of("pipe.so"), folder / "pipe.so is not a regular file");
  EXPECT_NE(problem_of("missing.so").find("No such file"), std::string::npos);
}

TEST(SharedLibrary, OpensALibraryAfterOneThatItRefused) {
  std::string problem = "of another library";
  EXPECT_TRUE(SharedLibrary::open(kThere, problem));
}

TEST(SharedLibrary, CountsAsLoadingAndMayBeForbidden) {
  FirstTimeWork work;
  std::string problem;
  const FirstTimeScope scope(&work);
  EXPECT_TRUE(SharedLibrary::open(kThere, problem));
  EXPECT_EQ(work.counts(FirstTime::load).before_ready, 1);
  work.set_ready(false);
  EXPECT_TRUE(SharedLibrary::open(kThere, problem));
  EXPECT_EQ(work.counts(FirstTime::load).after_ready, 1);
  work.set_ready(true);
  const std::string message = message_of<InternalError>([&] { SharedLibrary::open(kThere, problem); });
  EXPECT_NE(message.find("libm.so.6 wants to load"), std::string::npos) << message;
}

TEST(SharedLibrary, NamesTheFirstOfSeveralSymbolsThatIsMissing) {
  std::string problem;
  const auto library = SharedLibrary::open(kThere, problem);
  ASSERT_TRUE(library) << problem;
  double (*root)(double) = nullptr;
  library->find("sqrt", root, problem);
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root(81), 9);
  EXPECT_EQ(problem, "");
  int (*first)() = nullptr;
  int (*second)() = [] { return 1; };
  library->find("weft_first", first, problem);
  library->find("weft_second", second, problem);
  EXPECT_EQ(problem, "libm.so.6 has no weft_first");
  EXPECT_EQ(first, nullptr);
  EXPECT_EQ(second, nullptr) << "nothing of before is left standing";
  library->find("sqrt", root, problem);
  EXPECT_EQ(problem, "libm.so.6 has no weft_first") << "a symbol that is there mends nothing";
}

}  // namespace weft::shared_library_test
