// One breach for each rule of ir/verify.h.

#include "ir/verify.h"

#include <gtest/gtest.h>

#include "ir/alias.h"
#include "ir/parse.h"

namespace weft::verify_test {

const OpTable& ops() {
  static const OpTable table = make_op_table();
  return table;
}

std::shared_ptr<Graph> parsed(const std::string& text) { return parse_graph(text, ops()); }
std::string breach(const Graph& graph) { return find_breach(graph, ops()).value_or("legal"); }
void expect_breach(const std::string& text, const std::string& part) {
  const std::string found = breach(*parsed(text));
  EXPECT_NE(found.find(part), std::string::npos) << found;
}

// A graph of this stage over %x and %r: f32[s0, 64].
std::string graph_text(const std::string& stage, const std::string& nodes, const std::string& results = "%y",
                       const std::string& where = " where s0 in [1, 8]", const std::string& given = "") {
  return "graph g(" + given + "%x: f32[s0, 64], " + given + "%r: f32[s0, 64]) stage=" + stage + where + " {\n" + nodes +
         "  return " + results + "\n}\n";
}

TEST(Verify, WantsDefinitionsBeforeUses) {
  auto graph = parsed(graph_text("pure", "  %y = neg(%x)\n  %z = exp(%y)\n", "%z"));
  graph->move_before(graph->nodes().back().get(), graph->nodes().front().get());
  EXPECT_NE(breach(*graph).find("%y is used before it is defined"), std::string::npos) << breach(*graph);
}

TEST(Verify, WantsUseListsThatAgree) {
  auto graph = parsed(graph_text("pure", "  %y = neg(%x)\n"));
  graph->inputs()[0]->uses.clear();
  EXPECT_NE(breach(*graph).find("use list of %x is wrong"), std::string::npos) << breach(*graph);
}

TEST(Verify, WantsTheTypesThatAnOpInfers) {
  auto graph = parsed(graph_text("pure", "  %y = neg(%x)\n"));
  graph->nodes().front()->result()->meta = Meta::tensor(DType::f32, {Dim::symbol("s0"), 63});
  EXPECT_NE(breach(*graph).find("line 2: %y must be f32[s0, 64]"), std::string::npos) << breach(*graph);
}

TEST(Verify, WantsKnownOps) { expect_breach(graph_text("pure", "  %y: f32[4] = mystery(%x)\n"), "is not an op"); }

TEST(Verify, WantsSymbolsThatAnInputShows) {
  auto graph = parsed(graph_text("pure", "  %y = neg(%x)\n"));
  graph->inputs()[0]->meta = Meta::tensor(DType::f32, {Dim::symbol("s0"), 64});
  for (const auto& input : graph->inputs()) input->meta.shape[0] = 5;
  graph->nodes().front()->result()->meta.shape[0] = Dim::symbol("s9");
  EXPECT_NE(breach(*graph), "legal");
  expect_breach(
      "graph g(%x: f32[s0, 4], %u: f32[s1, 4]) stage=pure {\n  %y = neg(%x)\n  %z = neg(%u)\n"
      "  return %y, %z\n}\n",
      "dim 0 of %z is s1, but the rows are governed by s0");
}

TEST(Verify, TakesRowsThatAreAMultipleOfTheGoverningSymbol) {
  EXPECT_EQ(breach(*parsed("graph g(%x: f32[s0, 12], %u: f32[s1, 4]) stage=pure {\n  %y = neg(%x)\n"
                           "  %z = reshape(%y, shape=[3*s0, 4])\n  return %z\n}\n")),
            "legal");
  expect_breach("graph g(%x: f32[s0, 4], %w: f32[5, 4]) stage=pure {\n  %z = concat(%x, %w, dim=0)\n  return %z\n}\n",
                "dim 0 of %z is s0 + 5, but the rows are governed by s0");
}

TEST(Verify, WantsSymbolsThatARunCanCompute) {
  const auto text = [](const std::string& inputs, const std::string& node, const std::string& result = "%y") {
    return "graph g(" + inputs + ") stage=traced {\n  %y = " + node + "\n  return " + result + "\n}\n";
  };
  // The input and the symbol are named: no size follows from a size that is rounded up, or from a sum or a product.
  for (const char* dim : {"align(s0, 128)", "2*s0", "s0 + 1", "s0*s1", "floordiv(s0, 2)"})
    for (const std::string& type : {"f32[1, " + std::string(dim) + ", 8]", "f32[4, " + std::string(dim) + "]"})
      expect_breach(text("%x: " + type, "neg(%x)"), "s0 cannot be read from an input");
  expect_breach(text("%x: f32[1, align(s0, 128), 8]", "neg(%x)"), "%x: f32[1, align(s0, 128), 8]");
  expect_breach(text("%x: f32[s0, 8], %z: f32[4, 2*s1]", "neg(%x)"), "%z: f32[4, 2*s1]");
  expect_breach(text("%x: f32[s0, 8]{s1, 1}", "neg(%x)"), "s1 cannot be read from an input");
  expect_breach(text("%x: f32[8, 8]", "empty(shape=[8, s5], dtype=f32)"), "s5 cannot be read from an input");
  // Any other input may show the symbol.
  EXPECT_EQ(breach(*parsed(text("%x: f32[s0, 8], %z: f32[1, align(s0, 128), 8]", "neg(%z)"))), "legal");
  EXPECT_EQ(breach(*parsed(text("%z: f32[1, align(s0, 128), 8], %x: f32[4, s0]", "neg(%z)"))), "legal");
}

TEST(Verify, APieceReadsItsSymbolsFromTheGraph) {
  const auto text = [](const std::string& inputs) {
    return "piece p0(%x: f32[1, align(s0, 128), 8]) stage=lowered where s0 in [1, 8] {\n  %y = neg@native(%x)\n"
           "  return %y\n}\ngraph g(" +
           inputs +
           "%x: f32[1, align(s0, 128), 8]) stage=split where s0 in [1, 8] {\n"
           "  %y: f32[1, align(s0, 128), 8] = call p0(%x)\n  return %y\n}\n";
  };
  EXPECT_EQ(breach(*parsed(text("%n: f32[s0, 4], "))), "legal");
  expect_breach(text(""), "s0 cannot be read from an input");
}

TEST(Verify, TracedUsesNoDonatedValueAgain) {
  const std::string call = "  %y, %s = fused_add_rms_norm.maybe_inplace(%x, %r, none, epsilon=1e-05)\n";
  EXPECT_EQ(breach(*parsed(graph_text("traced", call))), "legal");
  expect_breach(graph_text("traced", call + "  %z = add(%y, %x)\n", "%z"), "%x is used again after it was donated");
  expect_breach(graph_text("traced", call, "%y, %r"), "%r is used again after it was donated");
  expect_breach(graph_text("traced", "  %v = slice(%x, dim=1, start=0, end=64)\n" + call + "  %z = neg(%v)\n", "%z"),
                "%x is used again after it was donated");
  expect_breach(graph_text("traced", "  %y, %s = fused_add_rms_norm.maybe_inplace(%x, %x, none, epsilon=1e-05)\n"),
                "donated and read");
}

TEST(Verify, TracedHasInplaceOnlyWhereAllowedAndNoProvider) {
  expect_breach(graph_text("traced", "  %y = neg.maybe_inplace(%x)\n"), "has no maybe_inplace form");
  expect_breach(graph_text("traced", "  %y = neg@native(%x)\n"), "a provider is chosen at stage lowered");
}

TEST(Verify, PureHasNeitherInplaceNorProvider) {
  const std::string call = "(%x, %r, none, epsilon=1e-05)\n";
  expect_breach(graph_text("pure", "  %y, %s = fused_add_rms_norm.maybe_inplace" + call), "no maybe_inplace");
  expect_breach(graph_text("pure", "  %y, %s = fused_add_rms_norm@cpu" + call), "a provider is chosen");
}

TEST(Verify, LoweredHasProvidersAndBounds) {
  expect_breach(graph_text("lowered", "  %y = neg(%x)\n"), "no provider was chosen");
  EXPECT_EQ(breach(*parsed(graph_text("lowered", "  %y = silu@native(%x)\n", "%y", " where s0 in [1, 8]"))), "legal");
  expect_breach(graph_text("lowered", "  %y = neg@native(%x)\n", "%y", ""), "bounds of s0 are missing");
}

TEST(Verify, LoweredWritesOnlyOverWhatIsGivenAndDead) {
  const std::string fused = "  %y, %s = fused_add_rms_norm@cpu.inplace(&%x, &%r, none, epsilon=1e-05)\n";
  const std::string where = " where s0 in [1, 8]";
  EXPECT_EQ(breach(*parsed(graph_text("lowered", fused, "%y, %s", where, "donated "))), "legal");
  expect_breach(graph_text("lowered", fused), "%x is an input that was not donated");
  expect_breach(graph_text("lowered", "  %y = neg@cpu.inplace(&%x)\n", "%y", where, "donated "), "does not donate");
  expect_breach(graph_text("lowered", fused + "  %z = neg@native(%x)\n", "%z", where, "donated "),
                "%x is read after its storage was overwritten");
  expect_breach(graph_text("lowered", fused, "%y, %r", where, "donated "), "%r is returned after its storage");
  expect_breach(
      graph_text("lowered", "  %v = reshape@native(%x, shape=[s0, 4, 16])\n" + fused + "  %z = neg@native(%v)\n", "%z",
                 where, "donated "),
      "%v is read after its storage was overwritten");
}

TEST(Verify, ReturnedPagesAreInADonatedInput) {
  const std::string input = "%kv: kv[f32, block=16, heads=2, head_dim=16]";
  for (const std::string stage : {"traced", "pure", "lowered", "split"}) {
    const std::string rest = ") stage=" + stage + " {\n  return %kv\n}\n";
    expect_breach("graph g(" + input + rest, "the KV pages %kv are stored in %kv, which was not donated");
    EXPECT_EQ(breach(*parsed("graph g(donated " + input + rest)), "legal");
  }
}

// Whether a copy of the pages would stay is known only after lowering; then the compiler refuses the graph.
TEST(Verify, PurePagesMayBeUpdatedFromAnInputThatWasNotDonated) {
  EXPECT_EQ(breach(*parsed("graph g(%k: f32[s0, 2, 16], %kv: kv[f32, block=16, heads=2, head_dim=16], %slots: i64[s0]) "
                           "stage=pure {\n  %new = kv_cache_update(%k, %k, %kv, %slots)\n  return %new\n}\n")),
            "legal");
}

TEST(Verify, SplitHoldsCallsThatAgreeWithTheirPieces) {
  const std::string piece =
      "piece p0(%x: f32[s0, 4]) stage=lowered where s0 in [1, 8] {\n  %y = neg@native(%x)\n  return %y\n}\n";
  auto graph_of = [&](const std::string& node) {
    return piece + "graph g(%x: f32[s0, 4], %w: f32[4, 5]) stage=split where s0 in [1, 8] {\n  " + node +
           "\n  return %y\n}\n";
  };
  EXPECT_EQ(breach(*parsed(graph_of("%y: f32[s0, 4] = call p0(%x)"))), "legal");
  expect_breach(graph_of("%y = neg(%x)"), "a split graph holds calls alone");
  expect_breach(graph_of("%y: f32[s0, 4] = call p0(%x, %x)"), "p0 takes 1 arguments");
  expect_breach(graph_of("%y: f32[s0, 4] = call p0(%w)"), "argument 0 must be f32[s0, 4]");
  expect_breach(graph_of("%y: f32[s0, 5] = call p0(%x)"), "result 0 must be f32[s0, 4]");
  auto pure = parsed(graph_of("%y: f32[s0, 4] = call p0(%x)"));
  pure->pieces[0]->stage = Stage::pure;
  EXPECT_NE(breach(*pure).find("piece p0 is not at stage lowered"), std::string::npos);
}

TEST(Alias, KnowsColumnsOfOneMatrixApart) {
  const auto graph = parsed(
      "graph g(%x: f32[s0, 96]) stage=pure {\n  %a = slice(%x, dim=1, start=0, end=32)\n"
      "  %b = slice(%x, dim=1, start=32, end=64)\n  %c = slice(%x, dim=1, start=16, end=48)\n"
      "  %d = reshape(%b, shape=[s0, 2, 16])\n  %e = neg(%x)\n  return %a, %b, %c, %d, %e\n}\n");
  std::vector<MemoryLocation> parts;
  for (const GraphValue* value : graph->results()) parts.push_back(location_of(value));
  EXPECT_FALSE(may_overlap(parts[0], parts[1]));
  EXPECT_TRUE(may_overlap(parts[0], parts[2]));
  EXPECT_TRUE(may_overlap(parts[1], parts[3]));
  EXPECT_FALSE(may_overlap(parts[0], parts[3]));
  EXPECT_FALSE(may_overlap(parts[0], parts[4]));
  EXPECT_TRUE(may_overlap(location_of(graph->inputs()[0].get()), parts[1]));
  EXPECT_EQ(storage_root(graph->results()[3]), graph->inputs()[0].get());
  EXPECT_EQ(storage_offset(graph->results()[3]).text(), "32");
  EXPECT_EQ(aliases(graph->inputs()[0].get()).size(), 5u);
}

}  // namespace weft::verify_test
