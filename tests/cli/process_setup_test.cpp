#include "apps/cli/process_setup.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace weft::process_setup_test {

using ::testing::ExitedWithCode;

TEST(ProcessSetup, GivesNoFileTheNumberOfAClosedDescriptor) {
  const auto with_closed_ones = [] {
    ::close(0);
    ::close(1);
    set_up_process();
    char byte = 'x';
    const bool is_apart = ::open("/dev/null", O_RDWR) > 2;
    const bool fails = ::write(1, &byte, 1) < 0 && ::read(0, &byte, 1) < 0;
    ::_exit(is_apart && fails ? 7 : 8);
  };
  EXPECT_EXIT(with_closed_ones(), ExitedWithCode(7), "");
}

TEST(ProcessSetup, LetsWritingFailAtTheLimitOfAFile) {
  const auto with_limit = [] {
    set_up_process();
    const rlimit limit{1, 1};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::string name = ::testing::TempDir() + "weft-XXXXXX";
    const int file = ::mkstemp(name.data());
    ::unlink(name.c_str());
    const bool first = ::write(file, "xy", 2) == 1;
    const bool fails = ::write(file, "y", 1) < 0 && errno == EFBIG;
    ::_exit(first && fails ? 7 : 8);
  };
  EXPECT_EXIT(with_limit(), ExitedWithCode(7), "");
}

}  // namespace weft::process_setup_test
