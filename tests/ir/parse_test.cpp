// From text to graph: accepted texts, and the messages for others.

#include "ir/parse.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "tests/thrown_message.h"

namespace weft::parse_test {

const OpTable& ops() {
  static const OpTable table = make_op_table();
  return table;
}

std::string refusal(const std::string& text) {
  return message_of([&] { parse_graph(text, ops(), "t"); });
}

// A graph of one node over %x: f32[s0, 64].
std::string with_node(const std::string& node) {
  return "graph g(%x: f32[s0, 64]) stage=pure {\n  " + node + "\n  return %y\n}\n";
}

void expect_refused(const std::string& text, const std::string& part) {
  const std::string message = refusal(text);
  EXPECT_NE(message.find(part), std::string::npos) << text << "\n" << message;
}

TEST(Parse, ReadsBackWhatDisplayPrints) {
  const char* text =
      "graph mlp(%x: bf16[s0, 3072], %r: bf16[s0, 576]) stage=pure where s0 in [1, 8192] {\n"
      "  %a: bf16[s0, 1536] = silu_and_mul(%x)  #@ layer=3\n"
      "  %q: i8[s0, 1536], %s: f32[s0, 48] = per_token_group_quant_int8(%a, group_size=32)\n"
      "  %v: bf16[s0, 9, 64] = reshape(%r, shape=[s0, 9, 64])\n"
      "  return %q, %s, %v\n"
      "}\n";
  const auto graph = parse_graph(text, ops());
  EXPECT_EQ(display(*graph), text);
  EXPECT_EQ(find_breach(*graph, ops()).value_or(""), "");
  EXPECT_EQ(graph->nodes().front()->origin, (Origin{{"layer", "3"}}));
}

TEST(Parse, InfersResultTypesThatTheTextLeavesOut) {
  const auto graph = parse_graph(with_node("%y = silu_and_mul(%x)"), ops());
  EXPECT_EQ(graph->results()[0]->meta.text(), "f32[s0, 32]");
}

TEST(Parse, ReadsCommentsCrlfAndBracketsOverLines) {
  const auto graph = parse_graph(
      "# a comment\r\ngraph g(\r\n    %x: f32[s0, 64], # the rows\r\n    %w: f32[64]) stage=pure {\r\n"
      "  %y = rms_norm(%x,\r\n    %w, epsilon=1e-05)\r\n  return %y\r\n}\r\n",
      ops());
  EXPECT_EQ(graph->nodes().size(), 1u);
}

TEST(Parse, ReadsInputsOfEveryKind) {
  const char* text =
      "graph g(donated %x: f32[4, 8], param(\"blk.0.\\\"w\\\"\") %w: q4_1[32, 64], param %t: f32[8],\n"
      "    %kv: kv[f16, block=16, heads=3, head_dim=64], %b: batch, %s: f32[4, 8]{16, 1}) stage=traced {\n"
      "  return %x\n}\n";
  const auto graph = parse_graph(text, ops());
  EXPECT_EQ(display(*parse_graph(display(*graph), ops())), display(*graph));
  EXPECT_TRUE(graph->inputs()[0]->donated);
  EXPECT_EQ(graph->inputs()[1]->key, "blk.0.\"w\"");
  EXPECT_TRUE(graph->inputs()[2]->param);
  EXPECT_EQ(graph->inputs()[3]->meta.kv.heads, 3);
  EXPECT_EQ(graph->inputs()[5]->meta.text(), "f32[4, 8]{16, 1}");
}

TEST(Parse, ReadsAnUnknownOpWhichTheVerifierRefuses) {
  const auto graph = parse_graph(with_node("%y: f32[s0, 64] = mystery(%x, level=3)"), ops());
  EXPECT_NE(find_breach(*graph, ops()).value_or("").find("[mystery] is not an op"), std::string::npos);
  EXPECT_EQ(display(*parse_graph(display(*graph), ops())), display(*graph));
}

TEST(Parse, SaysWhereAndWhatItExpected) {
  expect_refused("graph g(%x f32[4]) stage=pure {\n  return %x\n}\n", "t:1:12: expected ':'");
  expect_refused("graph g(%x: f32[s0", "t:1:19: expected ']'");
  expect_refused("graf g() stage=pure {\n return\n}\n",
                 "expected 'graph', 'piece', 'splitting' or 'pattern', but found 'graf'");
  expect_refused("graph g(param(3) %x: f32[4]) stage=pure {\n  return %x\n}\n",
                 "t:1:15: expected the checkpoint key in quotes, but found '3'");
  expect_refused(with_node("%y = neg(%x"), "t:3:");
  expect_refused(with_node("%y = neg(%z)"), "%z is used before it is defined");
  expect_refused(with_node("%x = neg(%x)"), "%x is defined twice");
  expect_refused("graph g() stage=frozen {\n  return\n}\n", "a stage is one of");
}

TEST(Parse, RefusesCallsThatDoNotFitTheirOp) {
  expect_refused(with_node("%y = neg(%x, %x)"), "takes 1 tensors");
  expect_refused(with_node("%y = add(%x)"), "y must be given");
  expect_refused(with_node("%y = neg(none)"), "must be a value");
  expect_refused(with_node("%y = add_scalar(%x)"), "value must be given");
  expect_refused(with_node("%y = add_scalar(%x, value=1.0, value=2.0)"), "is given twice");
  expect_refused(with_node("%y = add_scalar(%x, speed=1.0)"), "has no attribute speed");
  expect_refused(with_node("%y: f32[s0, 65] = neg(%x)"), "is stated as f32[s0, 65], but neg gives f32[s0, 64]");
  expect_refused(with_node("%y, %z = neg(%x)"), "gives 1 results, but 2 are named");
  expect_refused(with_node("%y = slice(%x, dim=s0, start=0, end=1)"), "dim must be a number, but is s0");
  expect_refused(with_node("%y = neg.inplace(%x)"), "an op is followed by");
  expect_refused(with_node("%y = call p7(%x)"), "no piece named p7");
}

TEST(Parse, KeepsPiecesWithTheGraphThatFollowsThem) {
  const char* text =
      "piece p0(%x: f32[s0, 4]) stage=lowered where s0 in [1, 8] {\n"
      "  %y: f32[s0, 4] = neg@native(%x)\n"
      "  return %y\n"
      "}\n\n"
      "graph g(%x: f32[s0, 4]) stage=split where s0 in [1, 8] {\n"
      "  %y: f32[s0, 4] = call p0(%x)\n"
      "  return %y\n"
      "}\n";
  const auto graph = parse_graph(text, ops());
  ASSERT_EQ(graph->pieces.size(), 1u);
  EXPECT_EQ(display(*graph), text);
  EXPECT_EQ(find_breach(*graph, ops()).value_or(""), "");
  expect_refused("piece p0(%x: f32[4]) stage=lowered {\n  return %x\n}\n", "the graph that the pieces belong to");
}

}  // namespace weft::parse_test
