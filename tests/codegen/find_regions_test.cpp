#include "codegen/find_regions.h"

#include <gtest/gtest.h>

#include "ir/parse.h"

namespace weft::find_regions_test {

const OpTable& ops() {
  static const OpTable table = make_op_table();
  return table;
}

std::shared_ptr<Graph> piece(const std::string& inputs, const std::string& body, const std::string& results) {
  return parse_graph(
      "graph g(" + inputs + ") stage=lowered where s0 in [1, 64] {\n" + body + "return " + results + "\n}\n", ops());
}

std::string words_of(const Schedule& schedule) {
  std::string text;
  for (const ScheduledStep& step : schedule.steps) {
    if (!text.empty()) text += " ";
    if (step.node != nullptr) {
      text += step.node->result()->name;
      continue;
    }
    text += "[";
    for (const Node* node : schedule.regions[static_cast<std::size_t>(step.region)].nodes)
      text += (text.back() == '[' ? "" : " ") + node->result()->name;
    text += "]";
  }
  return text;
}

// A schedule as words: names of nodes, functions as the results of their nodes in brackets.
std::string schedule_of(const std::string& inputs, const std::string& body, const std::string& results,
                        std::string* refusals = nullptr) {
  const auto graph = piece(inputs, body, results);
  const Schedule schedule = schedule_piece(*graph);
  if (refusals != nullptr)
    for (const RowRefusal& refusal : schedule.refusals)
      *refusals += refusal.node->result()->name + ": " + refusal.reason + "\n";
  return words_of(schedule);
}

constexpr const char* kRows = "%x: f32[s0, 64], %w: f32[64, 64], %n: f32[64]";

TEST(FindRegions, JoinsWhatWorksOnTheSameRowsAndStopsAtCalls) {
  EXPECT_EQ(schedule_of(kRows,
                        "%a = exp@native(%x)\n%b = mul@native(%a, %n)\n%c = linear@cpu(%b, %w)\n"
                        "%d = neg@native(%c)\n%e = abs@native(%d)\n",
                        "%e"),
            "[a b] c [d e]");
}

TEST(FindRegions, CutsALongChainIntoSeveralFunctions) {
  std::string body, value = "x";
  for (std::size_t i = 0; i < 2 * kMostNodesOfRegion + 1; ++i) {
    const std::string next = "a" + std::to_string(i);
    body += "%" + next + " = exp@native(%" + value + ")\n";
    value = next;
  }
  const auto graph = piece(kRows, body, "%" + value);
  const Schedule schedule = schedule_piece(*graph);
  std::size_t nodes = 0;
  for (const RowRegion& region : schedule.regions) {
    EXPECT_LE(region.nodes.size(), kMostNodesOfRegion);
    nodes += region.nodes.size();
  }
  EXPECT_EQ(nodes, 2 * kMostNodesOfRegion + 1);
  EXPECT_EQ(schedule.steps.size(), 3U);
}

TEST(FindRegions, LeavesChosenKernelsAlone) {
  EXPECT_EQ(schedule_of(kRows, "%a = exp@native(%x)\n%b = mul@cpu(%a, %n)\n%c = neg@native(%b)\n", "%c"), "[a] b [c]");
}

TEST(FindRegions, JoinsTwoRegionsInTheirCommonUser) {
  EXPECT_EQ(schedule_of(kRows, "%a = exp@native(%x)\n%b = neg@native(%x)\n%c = add@native(%a, %b)\n", "%c"), "[a b c]");
}

// b depends on a and c on b: a and c are no single step, although c reads a.
TEST(FindRegions, DoesNotJoinAroundACall) {
  EXPECT_EQ(schedule_of(kRows, "%a = exp@native(%x)\n%b = linear@cpu(%a, %w)\n%c = add@native(%a, %b)\n", "%c"),
            "[a] b [c]");
}

// The same, with a function between them that is no call itself.
TEST(FindRegions, DoesNotJoinAroundAFunction) {
  EXPECT_EQ(schedule_of("%x: f32[s0, 64], %w: f32[32, 64], %v: f32[64, 32]",
                        "%a = exp@native(%x)\n%b = linear@cpu(%a, %w)\n%c = neg@native(%b)\n%d = linear@cpu(%c, %v)\n"
                        "%e = add@native(%a, %d)\n",
                        "%e"),
            "[a] b [c] d [e]");
}

TEST(FindRegions, MovesACallBehindTheFunctionThatItReads) {
  EXPECT_EQ(schedule_of(kRows, "%a = exp@native(%x)\n%b = linear@cpu(%a, %w)\n%c = neg@native(%a)\n", "%b, %c"),
            "[a c] b");
}

// Who reads x must do so before it is written over.
TEST(FindRegions, KeepsReadersBeforeTheKernelThatWritesOver) {
  EXPECT_EQ(schedule_of("donated %x: f32[s0, 64], %y: f32[s0, 64], %n: f32[64]",
                        "%a = exp@native(%x)\n"
                        "%r, %s = fused_add_rms_norm@cpu.inplace(%y, &%x, %n, epsilon=1e-05)\n"
                        "%b = add@native(%a, %s)\n",
                        "%b, %r"),
            "[a] r [b]");
}

TEST(FindRegions, KeepsViewsThatOthersLookThrough) {
  EXPECT_EQ(schedule_of("%x: f32[s0, 64], %w: f32[64, 64]",
                        "%g = reshape@native(%x, shape=[s0, 2, 32])\n%a = exp@native(%g)\n"
                        "%f = reshape@native(%a, shape=[s0, 64])\n%c = linear@cpu(%f, %w)\n",
                        "%c"),
            "g [a] f c");
}

TEST(FindRegions, LeavesOutViewsInsideAFunction) {
  EXPECT_EQ(schedule_of("%x: f32[s0, 64]",
                        "%a = abs@native(%x)\n%g = reshape@native(%a, shape=[s0, 2, 32])\n"
                        "%m = amax@native(%g, dim=-1)\n%q = div@native(%g, %m)\n",
                        "%q"),
            "[a m q]");
}

constexpr const char* kTable = "%x: f32[s0, 64], %y: f32[s0, 64], %w: f32[64, 64], %i: i64[s0], %t: f32[40, 64]";

TEST(FindRegions, ReadsTakenRowsInEachFunctionThatWantsThem) {
  EXPECT_EQ(schedule_of(kTable,
                        "%r = index_select@native(%t, %i, dim=0)\n%a = mul@native(%x, %r)\n"
                        "%c = linear@cpu(%a, %w)\n%b = mul@native(%c, %r)\n",
                        "%b"),
            "[a] c [b]");
}

TEST(FindRegions, TakesRowsInAFunctionOfItsOwnForCalls) {
  EXPECT_EQ(schedule_of(kTable,
                        "%r = index_select@native(%t, %i, dim=0)\n%a = mul@native(%x, %r)\n"
                        "%c = linear@cpu(%r, %w)\n",
                        "%a, %c"),
            "[r] [a] c");
  EXPECT_EQ(schedule_of(kTable, "%r = index_select@cpu(%t, %i, dim=0)\n%a = mul@native(%x, %r)\n", "%a"), "r [a]");
}

// Also if the table is overwritten later, and if a call makes it.
TEST(FindRegions, TakesRowsBetweenWhatMakesAndWhatOverwritesTheTable) {
  EXPECT_EQ(schedule_of("%x: f32[s0, 64], %i: i64[s0], %s: f32[40, 64], %u: f32[40, 64], %n: f32[64], %w: f32[64, 64]",
                        "%t = linear@cpu(%s, %w)\n%r = index_select@native(%t, %i, dim=0)\n"
                        "%a = mul@native(%x, %r)\n"
                        "%p, %q = fused_add_rms_norm@cpu.inplace(%u, &%t, %n, epsilon=1e-05)\n"
                        "%b = neg@native(%a)\n",
                        "%b, %p, %q"),
            "t [a b] p");
}

TEST(FindRegions, SaysWhichNodesItRefuses) {
  std::string refusals;
  EXPECT_EQ(schedule_of(kRows, "%a = exp@native(%x)\n%b = log1p@native(%a)\n%c = neg@native(%b)\n", "%c", &refusals),
            "[a] b [c]");
  EXPECT_EQ(refusals, "b: [log1p] log1p is not an op of rows\n");
}

// Views, calls, functions and values that none computes, each at the position of its counterpart, with the piece's own
// numbers.
TEST(FindRegions, ThoseOfAPieceServeAnotherWithOtherNumbers) {
  const auto with = [](const char* number) {
    return piece(kRows,
                 std::string("%a = add_scalar@native(%x, value=") + number +
                     ")\n%b = mul@native(%a, %n)\n%c = linear@cpu(%b, %w)\n"
                     "%v = slice@native(%c, dim=-1, start=0, end=32)\n%d = neg@native(%v)\n"
                     "%e = clamp@native(%d, min=" +
                     number + ")\n%i = cast@native(%x, dtype=i64)\n",
                 "%e, %i");
  };
  const auto first = with("0.5"), second = with("0.25");
  const Schedule own = schedule_piece(*second);
  const std::optional<Schedule> like = schedule_piece_like(*second, *first, schedule_piece(*first));
  ASSERT_TRUE(like);
  EXPECT_EQ(words_of(*like), words_of(own));
  ASSERT_EQ(like->regions.size(), own.regions.size());
  EXPECT_GE(own.regions.size(), 2u);
  for (std::size_t i = 0; i < own.regions.size(); ++i) {
    EXPECT_EQ(like->regions[i].program.text(), own.regions[i].program.text());
    EXPECT_EQ(like->regions[i].nodes, own.regions[i].nodes);
    EXPECT_EQ(like->regions[i].inputs, own.regions[i].inputs);
    EXPECT_EQ(like->regions[i].outputs, own.regions[i].outputs);
  }
  ASSERT_EQ(like->refusals.size(), own.refusals.size());
  for (std::size_t i = 0; i < own.refusals.size(); ++i) EXPECT_EQ(like->refusals[i].node, own.refusals[i].node);
}

}  // namespace weft::find_regions_test
