// Priority lists for a scope.

#include "compiler/context.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::context_test {

TEST(PriorityScope, NestsAndPutsBackWhatWasThere) {
  const auto context = test_context();
  const std::vector<std::string> before = context->priorities.list("rms_norm");
  {
    const PriorityScope outer(*context, "rms_norm", {"native"});
    EXPECT_EQ(context->priorities.list("rms_norm").front(), "native");
    try {
      const PriorityScope inner(*context, "rms_norm", {"reference", "cpu"});
      EXPECT_EQ(context->priorities.list("rms_norm").front(), "reference");
      throw 1;
    } catch (int) {
    }
    EXPECT_EQ(context->priorities.list("rms_norm").front(), "native");
  }
  EXPECT_EQ(context->priorities.list("rms_norm"), before);
  EXPECT_TRUE(context->priorities.user().empty()) << "no list, not an empty one";
}

TEST(PriorityScope, RefusesUnknownNamesAndLeavesTheListAsItWas) {
  const auto context = test_context();
  const std::vector<std::string> before = context->priorities.list("rms_norm");
  EXPECT_THROW(PriorityScope(*context, "rms_nrm", {"cpu"}), UserError);
  const std::string message = message_of([&] { const PriorityScope scope(*context, "rms_norm", {"natve"}); });
  EXPECT_NE(message.find("did you mean \"native\"?"), std::string::npos) << message;
  EXPECT_EQ(context->priorities.list("rms_norm"), before);
}

}  // namespace weft::context_test
