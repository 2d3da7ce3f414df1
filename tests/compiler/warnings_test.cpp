// Where the warnings of a Context go.

#include "compiler/warnings.h"

#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "compiler/log.h"

namespace weft::warnings_test {

TEST(Warnings, GoToTheScopeInWhichTheLogWasMade) {
  std::string outer, inner;
  std::ostringstream lines;
  Log of_outer, of_inner, again_of_outer;
  {
    const WarningScope first([&](const std::string& sentence) { outer += sentence + ";"; });
    of_outer = Log("passes", lines);
    {
      const WarningScope second([&](const std::string& sentence) { inner += sentence + ";"; });
      of_inner = Log("", lines);
    }
    again_of_outer = Log("", lines);
  }
  warn(of_outer, "a");
  warn(of_inner, "{b}");
  warn(again_of_outer, "c");
  std::thread([&] { warn(of_inner, "from another thread"); }).join();
  EXPECT_EQ(outer, "a;c;");
  EXPECT_EQ(inner, "{b};from another thread;");
  EXPECT_EQ(lines.str(), "") << "a warning is no line of the log";
}

TEST(Warnings, OfOtherThreadsAndOutsideOfScopesArePrinted) {
  std::ostringstream lines;
  Log before("", lines), of_thread;
  std::string caught;
  const WarningScope scope([&](const std::string& sentence) { caught += sentence; });
  std::thread([&] { of_thread = Log("", lines); }).join();
  ::testing::internal::CaptureStderr();
  warn(before, "made before the scope");
  warn(of_thread, "made on a thread without a scope");
  warn(Log(), "dropped");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "weft: made before the scope\nweft: made on a thread without a scope\n");
  EXPECT_EQ(caught, "");
}

}  // namespace weft::warnings_test
