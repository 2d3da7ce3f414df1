#pragma once

// Checks that a run of tests leaves out: the variable WEFT_TEST_WITHOUT names them, separated by blanks. With it
// tools/check_seeded_faults.py shows that a seeded fault is not detected without the check that detects it. The words:
//
//   places, races, shared, meetings, traffic   of the emulator (emulator/checks.h), and of the
//              PTX interpreter where it uses the emulator's memory; its own checks of alignment and meetings stay
//   results    the expected results of a test, such as the bits of an op's meaning, and EXPECT_NO_THROW; an
//              exception that leaves a test still fails it. After a failed ASSERT the rest of the test does not run
//   ptx        the same for suites Ptx...: the bits of the emulator
//   order      the fake device does its work late and in random order; without it, at once
//   captures   the fake device refuses calls that captures forbid
//
// Checks that no run can leave out have no word: faults that only the contract of machine code detects (Layer:
// contract), or a sanitizer (threads, addresses), are seeded in programs with and without it.
//
// A folder whose tests have seeded faults calls leave_checks_out() while its program starts.

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "emulator/checks.h"

namespace weft {

inline const std::vector<std::string>& checks_left_out() {
  static const std::vector<std::string> kWords = [] {
    const char* given = std::getenv("WEFT_TEST_WITHOUT");
    std::istringstream text(given == nullptr ? "" : given);
    return std::vector<std::string>(std::istream_iterator<std::string>(text), {});
  }();
  return kWords;
}

inline bool is_left_out(std::string_view check) {
  return std::find(checks_left_out().begin(), checks_left_out().end(), check) != checks_left_out().end();
}

// Collects the failed expectations of tests.
class ExpectsNothing : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& test) override {
    const bool is_of_ptx = std::string_view(test.test_suite_name()).substr(0, 3) == "Ptx";
    if (!is_left_out(is_of_ptx ? "ptx" : "results")) return;
    failures_ = std::make_unique<testing::TestPartResultArray>();
    reporter_ = std::make_unique<testing::ScopedFakeTestPartResultReporter>(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, failures_.get());
  }
  void OnTestEnd(const testing::TestInfo&) override {
    if (reporter_ == nullptr) return;
    reporter_.reset();
    for (int i = 0; i < failures_->size(); ++i)
      if (failures_->GetTestPartResult(i).file_name() == nullptr)  // no expectation: it was thrown
        ADD_FAILURE() << failures_->GetTestPartResult(i).message();
  }

 private:
  std::unique_ptr<testing::TestPartResultArray> failures_;
  std::unique_ptr<testing::ScopedFakeTestPartResultReporter> reporter_;
};

// Throws InternalError for an unknown word. Returns true, so that a static variable can be initialized with it.
inline bool leave_checks_out() {
  using cuda::EmulatorCheck;
  static const std::map<std::string_view, EmulatorCheck> kOfEmulator = {{"places", EmulatorCheck::places},
                                                                        {"races", EmulatorCheck::races},
                                                                        {"shared", EmulatorCheck::shared},
                                                                        {"meetings", EmulatorCheck::meetings},
                                                                        {"traffic", EmulatorCheck::traffic}};
  constexpr std::string_view kOthers[] = {"results", "ptx", "order", "captures"};
  for (const std::string& word : checks_left_out()) {
    const auto found = kOfEmulator.find(word);
    if (found != kOfEmulator.end()) {
      cuda::emulator_checks_left_out |= 1u << static_cast<unsigned>(found->second);
    } else {
      CHECK(std::find(std::begin(kOthers), std::end(kOthers), word) != std::end(kOthers),
            "WEFT_TEST_WITHOUT names {}, which is no check (tests/without_check.h)", word);
    }
  }
  if (!checks_left_out().empty()) testing::UnitTest::GetInstance()->listeners().Append(new ExpectsNothing);
  return true;
}

}  // namespace weft
