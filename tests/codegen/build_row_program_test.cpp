#include "codegen/build_row_program.h"

#include <gtest/gtest.h>

#include "ir/parse.h"

namespace weft::build_row_program_test {

// All nodes of a graph except views, as one region.
struct Built {
  std::shared_ptr<Graph> graph;
  std::optional<RowRegion> region;
  std::string reason;
};

// But for the node `left_out`.
Built build(const std::string& inputs, const std::string& body, const std::string& results,
            const std::string& left_out = "") {
  static const OpTable ops = make_op_table();
  Built built;
  built.graph = parse_graph(
      "graph g(" + inputs + ") stage=lowered where s0 in [1, 64] {\n" + body + "return " + results + "\n}\n", ops);
  std::vector<const Node*> nodes;
  for (const auto& node : built.graph->nodes())
    if (!node->op->is_view && node->result()->name != left_out) nodes.push_back(node.get());
  built.region = build_row_program(nodes, built.reason);
  return built;
}

std::string program_of(const std::string& inputs, const std::string& body, const std::string& results,
                       const std::string& left_out = "") {
  const Built built = build(inputs, body, results, left_out);
  return built.region ? built.region->program.text() : "refused: " + built.reason;
}

TEST(BuildRowProgram, ReadsTheHalvesOfARowAsTwoBuffers) {
  const std::string text = program_of("%x: f32[s0, 96]",
                                      "%a = slice@native(%x, dim=-1, start=0, end=48)\n"
                                      "%b = slice@native(%x, dim=-1, start=48, end=96)\n"
                                      "%y = mul@native(%a, %b)\n",
                                      "%y");
  EXPECT_EQ(text,
            "rows columns=48\n"
            "  buffer 0 in f32 row=96\n"
            "  buffer 1 in f32 row=96\n"
            "  buffer 2 out f32 row=48\n"
            "  v0 elem = load 0\n"
            "  v1 elem = load 1\n"
            "  v2 elem = mul v0 v1\n"
            "  store 2 v2\n");
}

TEST(BuildRowProgram, RoundsWhatTheGraphHasInMemory) {
  const std::string text = program_of("%x: bf16[s0, 32], %w: bf16[32]",
                                      "%a = mul@native(%x, %x)\n"
                                      "%y = mul@native(%a, %w)\n",
                                      "%y");
  EXPECT_EQ(text,
            "rows columns=32\n"
            "  buffer 0 in bf16 row=32\n"
            "  buffer 1 in bf16 row=0\n"
            "  buffer 2 out bf16 row=32 over 0\n"
            "  v0 elem = load 0\n"
            "  v1 elem = mul v0 v0\n"
            "  v2 elem = convert v1 bf16 plain\n"
            "  v3 elem = load 1\n"
            "  v4 elem = mul v2 v3\n"
            "  v5 elem = convert v4 bf16 plain\n"
            "  store 2 v5\n");
}

TEST(BuildRowProgram, ReadsRowsThatAreTakenByNumberWhereTheyLie) {
  const std::string text = program_of("%x: f32[s0, 64], %i: i64[s0], %t: f32[40, 64]",
                                      "%r = index_select@native(%t, %i, dim=0)\n"
                                      "%h = slice@native(%r, dim=-1, start=32, end=64)\n"
                                      "%g = reshape@native(%h, shape=[s0, 1, 32])\n"
                                      "%y = reshape@native(%x, shape=[s0, 2, 32])\n"
                                      "%z = mul@native(%y, %g)\n",
                                      "%z", "r");
  EXPECT_EQ(text,
            "rows columns=64\n"
            "  buffer 0 in f32 row=64\n"
            "  buffer 1 in i64 row=1\n"
            "  buffer 2 in f32 row=64 by 1 of 40 at 32 runs of 32 at 0\n"
            "  buffer 3 out f32 row=64 over 0\n"
            "  v0 elem = load 0\n"
            "  v1 elem = load 2\n"
            "  v2 elem = mul v0 v1\n"
            "  store 3 v2\n");
}

TEST(BuildRowProgram, TakesRowsOfPlainTablesAlone) {
  const auto take = [](const std::string& table, const std::string& dim) {
    return program_of("%i: i64[s0], %t: " + table, "%r = index_select@native(%t, %i, dim=" + dim + ")\n", "%r");
  };
  EXPECT_EQ(take("bf16[40, 64]", "0"),
            "rows columns=64\n"
            "  buffer 0 in i64 row=1\n"
            "  buffer 1 in bf16 row=64 by 0 of 40\n"
            "  buffer 2 out bf16 row=64\n"
            "  v0 elem = load 1\n"
            "  store 2 v0\n");
  EXPECT_EQ(take("f32[s0, 64]", "0").substr(0, 7), "refused");
  EXPECT_EQ(program_of("%i: i64[s0], %u: f32[40, 64]",
                       "%t = slice@native(%u, dim=-1, start=0, end=32)\n"
                       "%r = index_select@native(%t, %i, dim=0)\n",
                       "%r")
                .substr(0, 7),
            "refused");
}

// The buffers that an output may overlap.
std::string over_of(const std::string& body, const std::string& results) {
  const std::string text = program_of("%x: f32[s0, 64], %y: f32[s0, 64], %z: f32[s0, 2, 32]", body, results);
  std::string found;
  for (std::size_t at = text.find(" out "); at != std::string::npos; at = text.find(" out ", at + 1)) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    const std::size_t over = line.find("over ");
    found += (found.empty() ? "" : " ") + (over == std::string::npos ? "none" : line.substr(over + 5));
  }
  return found;
}

TEST(BuildRowProgram, WritesOverWhatNoLaterLevelReads) {
  EXPECT_EQ(over_of("%a = add@native(%x, %y)\n", "%a"), "1");
  // Each input once.
  EXPECT_EQ(over_of("%a = add@native(%x, %y)\n%b = mul@native(%x, %y)\n%c = sub@native(%x, %y)\n", "%a, %b, %c"),
            "1 0 none");
  // y is read after the sum, x before it and kept, or both.
  EXPECT_EQ(over_of("%a = exp@native(%x)\n%s = sum@native(%a, dim=-1)\n%b = mul@native(%y, %s)\n", "%b"), "1");
  EXPECT_EQ(over_of("%a = exp@native(%x)\n%s = sum@native(%a, dim=-1)\n%b = mul@native(%y, %s)\n", "%a, %b"), "0 1");
  EXPECT_EQ(over_of("%a = neg@native(%x)\n%s = sum@native(%a, dim=-1)\n%b = mul@native(%x, %s)\n", "%a, %b"), "none 0");
  // Another order of columns, another dtype, a part of a row.
  EXPECT_EQ(over_of("%h = slice@native(%x, dim=-1, start=0, end=32)\n%a = exp@native(%h)\n", "%a"), "none");
  EXPECT_EQ(over_of("%a = cast@native(%x, dtype=bf16)\n", "%a"), "none");
}

TEST(BuildRowProgram, KeepsWhatALaterLevelWantsAgain) {
  const std::string text = program_of("%x: f32[s0, 64], %y: f32[s0, 64]",
                                      "%a = add@native(%x, %y)\n"
                                      "%s = sum@native(%a, dim=-1)\n"
                                      "%z = mul@native(%a, %s)\n",
                                      "%z");
  EXPECT_NE(text.find("v2 elem = add v0 v1 kept 0\n  v3 row = row_sum v2\n  v4 elem = mul v2 v3\n"), std::string::npos)
      << text;
}

TEST(BuildRowProgram, HasGroupsWhereTheLargestOfEachIsTaken) {
  const Built built = build("%x: f32[s0, 128]",
                            "%g = reshape@native(%x, shape=[s0, 4, 32])\n"
                            "%a = abs@native(%g)\n"
                            "%m = amax@native(%a, dim=-1)\n"
                            "%q = div@native(%g, %m)\n"
                            "%y = reshape@native(%q, shape=[s0, 128])\n",
                            "%y, %m");
  ASSERT_TRUE(built.region) << built.reason;
  EXPECT_EQ(built.region->program.group, 32);
  EXPECT_EQ(built.region->program.columns, 128);
  ASSERT_EQ(built.region->outputs.size(), 2u);
  EXPECT_EQ(built.region->outputs[0]->name, "m");
  EXPECT_EQ(built.region->outputs[1]->name, "q");
  EXPECT_EQ(built.region->program.buffers[1].row_stride, 4);
}

TEST(BuildRowProgram, ReadsRunsOfColumnsThatLieApart) {
  const std::string text = program_of("%x: f32[s0, 3, 64], %c: f32[s0, 1, 32]",
                                      "%a = slice@native(%x, dim=-1, start=0, end=32)\n"
                                      "%y = mul@native(%a, %c)\n",
                                      "%y");
  EXPECT_NE(text.find("buffer 0 in f32 row=192 runs of 32 at 64\n  buffer 1 in f32 row=32 runs of 32 at 0\n"),
            std::string::npos)
      << text;
}

TEST(BuildRowProgram, ReadsAndWritesEverySecondColumn) {
  const std::string text = program_of("%x: f32[s0, 64]",
                                      "%a = slice@native(%x, dim=-1, start=0, end=64, step=2)\n"
                                      "%b = slice@native(%x, dim=-1, start=1, end=64, step=2)\n"
                                      "%c = neg@native(%b)\n"
                                      "%d = exp@native(%a)\n"
                                      "%e = reshape@native(%c, shape=[s0, 32, 1])\n"
                                      "%f = reshape@native(%d, shape=[s0, 32, 1])\n"
                                      "%y = concat@native(%e, %f, dim=-1)\n",
                                      "%y");
  EXPECT_EQ(text,
            "rows columns=32\n"
            "  buffer 0 in f32 row=64 every 2\n"
            "  buffer 1 in f32 row=64 every 2\n"
            "  buffer 2 out f32 row=64\n"
            "  v0 elem = load 0\n"
            "  v1 elem = neg v0\n"
            "  v2 elem = load 1\n"
            "  v3 elem = exp v2\n"
            "  store 2 v1 every 2\n"
            "  store 2 v3 at 1 every 2\n");
}

// Gates alternate with the values that they multiply: halves of words, whichever is read first.
TEST(BuildRowProgram, TellsWhatLiesBehindEachOther) {
  const auto read = [](const char* inputs, const char* second) {
    return program_of(inputs,
                      fmt::format("%a = slice@native({}, dim=-1, start=1, end=64, step=2)\n"
                                  "%b = slice@native(%x, dim=-1, start=0, end=63, step=2)\n"
                                  "%y = mul@native(%a, %b)\n",
                                  second),
                      "%y");
  };
  const auto has = [](const std::string& text, const char* line) { return text.find(line) != std::string::npos; };
  EXPECT_TRUE(has(read("%x: bf16[s0, 64]", "%x"), "buffer 0 in bf16 row=64 every 2 interleaved with 1\n"));
  EXPECT_TRUE(has(read("%x: f16[s0, 64]", "%x"), "buffer 0 in f16 row=64 every 2 interleaved with 1\n"));
  EXPECT_TRUE(has(read("%x: f32[s0, 64]", "%x"), "buffer 0 in f32 row=64 every 2\n"));
  EXPECT_TRUE(has(read("%x: bf16[s0, 64], %z: bf16[s0, 64]", "%z"), "buffer 0 in bf16 row=64 every 2\n"));
}

TEST(BuildRowProgram, PutsHalvesOfHeadsTogether) {
  const std::string text = program_of("%x: f32[s0, 3, 32], %z: f32[s0, 3, 32]",
                                      "%a = neg@native(%x)\n"
                                      "%y = concat@native(%a, %z, dim=-1)\n",
                                      "%y");
  EXPECT_NE(text.find("store 2 v1 runs of 32 at 64\n  store 2 v2 at 32 runs of 32 at 64\n"), std::string::npos) << text;
}

TEST(BuildRowProgram, AddsInF64WhereTheGraphDoes) {
  const std::string text = program_of("%x: f32[s0, 32], %z: f32[s0, 32]",
                                      "%a = cast@native(%x, dtype=f64)\n"
                                      "%b = cast@native(%z, dtype=f64)\n"
                                      "%c = mul_scalar@native(%b, value=0.1)\n"
                                      "%d = add@native(%a, %c)\n"
                                      "%y = cast@native(%d, dtype=f32)\n",
                                      "%y");
  EXPECT_NE(text.find("v4 const = constant 0.10000000000000001 f64\n  v5 elem = mul v3 v4\n  v6 elem = add v1 v5\n"
                      "  v7 elem = narrow v6\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(program_of("%x: f32[s0, 32]", "%a = cast@native(%x, dtype=f64)\n%y = exp@native(%a)\n", "%y"),
            "refused: [exp] is computed in f64");
  EXPECT_EQ(program_of("%x: f32[s0, 32]", "%a = cast@native(%x, dtype=f64)\n", "%a"), "refused: [cast] gives f64");
  EXPECT_EQ(
      program_of("%x: f32[s0, 32]",
                 "%a = cast@native(%x, dtype=f64)\n%b = sum@native(%a, dim=-1)\n%c = cast@native(%b, dtype=f32)\n",
                 "%c"),
      "refused: [sum] is computed in f64");
}

TEST(BuildRowProgram, TakesOneNumberForAllRows) {
  const std::string text = program_of("%x: f32[s0, 32], %s: f32[1]",
                                      "%r = reciprocal@native(%s)\n"
                                      "%y = mul@native(%x, %r)\n",
                                      "%y");
  EXPECT_NE(text.find("const = load"), std::string::npos) << text;
  EXPECT_NE(text.find("columns=32"), std::string::npos) << text;
}

TEST(BuildRowProgram, SumsGroupsAsNormsOfHeadsDo) {
  const std::string text = program_of("%x: f32[s0, 4, 32]",
                                      "%a = sum@native(%x, dim=-1)\n"
                                      "%y = mul@native(%x, %a)\n",
                                      "%y");
  EXPECT_EQ(text,
            "rows columns=128 group=32\n"
            "  buffer 0 in f32 row=128\n"
            "  buffer 1 out f32 row=128 over 0\n"
            "  v0 elem = load 0\n"
            "  v1 group = group_sum v0 kept 0\n"
            "  v2 elem = mul v0 v1\n"
            "  store 1 v2\n");
}

// Heads that are normed and then rotated. Their weight is the same for all.
constexpr const char* kNormedHeads =
    "%q = mul@native(%x, %x)\n"
    "%a = sum@native(%q, dim=-1)\n"
    "%b = mul@native(%x, %a)\n"
    "%n = mul@native(%b, %w)\n"
    "%l = slice@native(%n, dim=-1, start=0, end=32)\n"
    "%r = slice@native(%n, dim=-1, start=32, end=64)\n"
    "%c = sub@native(%l, %r)\n"
    "%d = add@native(%r, %l)\n"
    "%y = concat@native(%c, %d, dim=-1)\n";

TEST(BuildRowProgram, MakesHeadsThatAreReadByHalvesInHalves) {
  EXPECT_EQ(program_of("%x: f32[s0, 4, 64], %w: f32[64]", kNormedHeads, "%y"),
            "rows columns=128 group=32\n"
            "  buffer 0 in f32 row=256 runs of 32 at 64\n"
            "  buffer 1 in f32 row=256 at 32 runs of 32 at 64\n"
            "  buffer 2 in f32 row=0 runs of 32 at 0\n"
            "  buffer 3 in f32 row=0 at 32 runs of 32 at 0\n"
            "  buffer 4 out f32 row=256\n"
            "  v0 elem = load 0\n"
            "  v1 elem = mul v0 v0\n"
            "  v2 elem = load 1\n"
            "  v3 elem = mul v2 v2\n"
            "  v4 group = group_sum_of_halves v1 v3 kept 0\n"
            "  v5 elem = mul v0 v4\n"
            "  v6 elem = mul v2 v4\n"
            "  v7 elem = load 2\n"
            "  v8 elem = mul v5 v7\n"
            "  v9 elem = load 3\n"
            "  v10 elem = mul v6 v9\n"
            "  v11 elem = sub v8 v10\n"
            "  v12 elem = add v10 v8\n"
            "  store 4 v11 runs of 32 at 64\n"
            "  store 4 v12 at 32 runs of 32 at 64\n");
}

TEST(BuildRowProgram, StoresWhatIsInHalvesWhereItBelongs) {
  const std::string text = program_of("%x: f32[s0, 4, 64], %w: f32[64]", kNormedHeads, "%y, %n");
  EXPECT_NE(text.find("  store 4 v8 runs of 32 at 64\n  store 4 v10 at 32 runs of 32 at 64\n"), std::string::npos)
      << text;
}

TEST(BuildRowProgram, SaysWhichPartsAreNoHalves) {
  const auto reason_of = [](const std::string& start, const std::string& end, const std::string& more) {
    return program_of("%x: f32[s0, 4, 64], %z: f32[s0, 4, 32]",
                      "%n = mul@native(%x, %x)\n" + more + "%l = slice@native(%n, dim=-1, start=" + start +
                          ", end=" + end + ")\n%y = mul@native(%l, %z)\n",
                      more.empty() ? "%y" : "%y, %a");
  };
  EXPECT_EQ(reason_of("16", "48", ""), "refused: [mul] l is a part of a value of the same function");
  EXPECT_EQ(reason_of("32", "64", "%a = sum@native(%n, dim=-1)\n").substr(0, 8), "rows col");
  EXPECT_EQ(reason_of("32", "64", "%b = abs@native(%n)\n%a = amax@native(%b, dim=-1)\n"),
            "refused: [amax] is made of f32[s0, 4, 64] in halves of 32");
}

TEST(BuildRowProgram, SaysWhatStandsAgainstIt) {
  struct Case {
    const char *inputs, *body, *results, *reason;
  };
  const Case cases[] = {
      {"%x: f32[s0, 4, 32]", "%y = amax@native(%x, dim=-1)\n", "%y", "in groups of values that have signs"},
      {"%x: f32[2]", "%y = cast@native(%x, dtype=f4e2m1)\n", "%y", "whose rows share bytes"},
      {"%x: f4e2m1[s0, 32]", "%y = cast@native(%x, dtype=f32)\n", "%y", "reads f4e2m1[s0, 32]"},
      {"%x: f64[s0, 32]", "%y = exp@native(%x)\n", "%y", "reads f64[s0, 32]"},
      {"%x: f32[s0, 32]", "%y = cast@native(%x, dtype=i64)\n", "%y", "gives i64"},
      {"%x: f32[s0, 32]", "%y = log1p@native(%x)\n", "%y", "log1p is not an op of rows"},
      {"%x: f32[s0, s0]", "%y = exp@native(%x)\n", "%y", "columns of an unknown number"},
      {"%x: f32[s0, 4, 8]", "%y = sum@native(%x, dim=-1)\n", "%y", "has groups of 8"},
      {"%x: f32[s0, 4, 16]", "%y = sum@native(%x, dim=1)\n", "%y", "16 columns among 64"},
      {"%x: f32[s0, 4, 16]", "%a = slice@native(%x, dim=-1, start=0, end=8)\n%y = exp@native(%a)\n", "%y",
       "columns in runs of 8"},
      {"%x: f32[s0, 4, 16], %z: f32[s0, 4, 16]", "%a = exp@native(%x)\n%y = concat@native(%a, %z, dim=1)\n", "%y",
       "puts dim 1 together"},
      {"%x: f32[s0, 64], %z: f32[32, 64]", "%a = exp@native(%x)\n%b = exp@native(%z)\n", "%a, %b", "other rows"},
      {"%x: f32[s0, 64], %z: f32[s0, 48]", "%a = exp@native(%x)\n%b = exp@native(%z)\n", "%a, %b",
       "48 columns among 64"},
      {"%x: f32[s0, 64]", "%a = exp@native(%x)\n%b = slice@native(%a, dim=-1, start=0, end=64)\n%c = exp@native(%b)\n",
       "%c", "a part of a value of the same function"},
      {"%x: f32[s0, 32], %s: f32[1]", "%r = reciprocal@native(%s)\n%y = mul@native(%x, %r)\n", "%y, %r",
       "one number for all rows that others use"},
  };
  for (const Case& one : cases) {
    const Built built = build(one.inputs, one.body, one.results);
    EXPECT_FALSE(built.region) << one.body;
    EXPECT_NE(built.reason.find(one.reason), std::string::npos) << built.reason << " wanted " << one.reason;
  }
}

// One number for 16 groups is not one for each of them.
TEST(BuildRowProgram, ReadsNumbersOfGroupsForElementsAlone) {
  const std::string text = program_of("%x: f32[s0, 4, 16, 16], %z: f32[s0, 4, 1, 1]",
                                      "%a = abs@native(%x)\n"
                                      "%m = amax@native(%a, dim=-1)\n"
                                      "%y = mul@native(%m, %z)\n",
                                      "%y");
  EXPECT_EQ(text.find("refused: [mul] reads f32[s0, 4, 1, 1]"), 0u) << text;
}

TEST(RowProgram, IsNamedByWhatItComputes) {
  const char* body = "%y = mul@native(%x, %x)\n";
  const Built one = build("%x: f32[s0, 32]", body, "%y"), same = build("%x: f32[s0, 32]", body, "%y"),
              wider = build("%x: f32[s0, 64]", body, "%y");
  EXPECT_EQ(one.region->program.name(), same.region->program.name());
  EXPECT_NE(one.region->program.name(), wider.region->program.name());
}

}  // namespace weft::build_row_program_test
