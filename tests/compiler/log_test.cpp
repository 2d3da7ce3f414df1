// The program logs what WEFT_LOGS asks for, and nothing else.

#include "compiler/log.h"

#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "compiler/pipeline.h"
#include "ir/parse.h"
#include "tests/test_context.h"

namespace weft::log_test {

constexpr const char* kGraph = R"(
graph g(%x: f32[s0, 8], %w: f32[8]) stage=traced where s0 in [1, 8] {
  %a = rms_norm(%x, %w, epsilon=1e-05)
  %b = rms_norm(%x, %w, epsilon=1e-05)
  %c = sqrt(%a)
  %d = add(%b, %c)
  return %d
}
)";

std::string said(const std::string& topics) {
  const auto context = kernel_context();
  std::ostringstream to;
  context->log = Log(topics, to);
  const auto graph = parse_graph(kGraph, context->ops);
  compile(*graph, *context, {1, 8}, {});
  return to.str();
}

std::string refusal(const std::string& topics) {
  std::ostringstream to;
  try {
    Log(topics, to);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Log, SaysNothingUnasked) {
  EXPECT_EQ(said(""), "");
  EXPECT_EQ(said("-passes,-lowering,-cache"), "");
}

TEST(Log, GivesPassesTheirTimeAndCounts) {
  const std::string text = said("passes");
  EXPECT_NE(text.find("[passes] g 1-8: common_subexpression_elimination "), std::string::npos) << text;
  EXPECT_NE(text.find(" ms, 4 to 3 nodes"), std::string::npos) << text;
  EXPECT_EQ(text.find("noop_elimination"), std::string::npos) << "it did nothing";
  EXPECT_EQ(text.find("[lowering]"), std::string::npos);
  EXPECT_NE(said("+passes").find("noop_elimination"), std::string::npos);
}

TEST(Log, GivesNodesTheirChoiceAndWithPlusTheReason) {
  const std::string text = said("lowering");
  EXPECT_NE(text.find("[lowering] g 1-8: a = rms_norm@cpu\n"), std::string::npos) << text;
  const std::string more = said("+lowering,-passes");
  EXPECT_NE(
      more.find("c = sqrt@native: the last resort, which is always there; cpu was refused: has no kernel for sqrt\n"),
      std::string::npos)
      << more;
  EXPECT_EQ(more.find("[passes]"), std::string::npos);
}

TEST(Log, GivesPiecesTheirFunctionsAndKernels) {
  const std::string text = said("schedule");
  EXPECT_NE(text.find("[schedule] g 1-8 p0: 0 functions, "), std::string::npos) << "of kernels alone: " << text;
  EXPECT_EQ(text.find(" = rms_norm@cpu"), std::string::npos) << text;
  EXPECT_NE(said("+schedule").find("[schedule] g 1-8 p0: a = rms_norm@cpu\n"), std::string::npos);
}

TEST(Log, KnowsWhichTopicsNeedCompilation) {
  std::ostringstream to;
  for (const char* topics : {"passes", "+schedule,cache", "output_code"})
    EXPECT_TRUE(Log(topics, to).wants_compilation()) << topics;
  for (const char* topics : {"", "+cache,replay", "-passes,nan"})
    EXPECT_FALSE(Log(topics, to).wants_compilation()) << topics;
}

TEST(Log, RefusesATopicThatDoesNotExist) {
  EXPECT_NE(refusal("+passes,lowring").find("did you mean \"lowering\"?"), std::string::npos) << refusal("lowring");
  EXPECT_NE(refusal("+"), "accepted");
  EXPECT_EQ(refusal("passes, +fusion,lowering,guards,recompiles,graph_breaks,replay,output_code,schedule,-cache"),
            "accepted");
}

TEST(Log, DocumentsEachTopic) {
  const std::string page = read_file(WEFT_SOURCE_ROOT "/docs/debugging.md", 1 << 20);
  for (const std::string& topic : Log::topics())
    EXPECT_NE(page.find("\n| `" + topic + "` |"), std::string::npos) << topic;
}

}  // namespace weft::log_test
