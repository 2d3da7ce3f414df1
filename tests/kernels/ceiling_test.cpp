// The program runs once under each ceiling of instruction sets (cmake/tests.cmake). Under one that the host lacks it
// would repeat the run under the highest that it has.

#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "tests/test_context.h"

namespace weft::ceiling_test {

class ReachedCeiling : public testing::Environment {
 public:
  void SetUp() override {
    const std::string ceiling = unreached_ceiling();
    if (ceiling.empty()) return;
    std::cout << "count: skipped: all tests of kernels under WEFT_CPU_FEATURES=" << ceiling
              << ": this host lacks it, and they run under its highest level\n";
    std::exit(0);  // GTEST_SKIP would count every test as passed
  }
};

const testing::Environment* const kReachedCeiling = testing::AddGlobalTestEnvironment(new ReachedCeiling);

}  // namespace weft::ceiling_test
