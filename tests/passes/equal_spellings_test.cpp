// A quantization by groups is raised in each spelling that gives the same bits, and in no other.

#include "passes/equal_spellings.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "compiler/run/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/all.h"
#include "tensor/convert.h"
#include "tests/test_context.h"

namespace weft::equal_spellings_test {

constexpr int kRows = 6, kColumns = 128, kGroup = 64;

// A quantization in parts, each of which a case may spell in another way.
struct Spelling {
  std::string dtype = "bf16";
  std::string values = "%f = cast(%x, dtype=f32)\n%r = reshape(%f, shape=[6, 2, 64])\n";
  std::string largest = "%b = abs(%r)\n%m = amax(%b)\n";
  std::string scale, codes;
  std::string give = "%q2 = reshape(%q, shape=[6, 128])\n";

  std::string text() const {
    return "graph g(%x: " + dtype + "[6, 128]) stage=pure {\n" + values + largest + scale + codes + give +
           "%s2 = reshape(%s, shape=[6, 2])\nreturn %q2, %s2\n}\n";
  }
};

Spelling fp8() {
  return {.scale = "%c = clamp(%m, min=1e-10)\n%s = div_scalar(%c, value=448.0)\n",
          .codes = "%d = div(%r, %s)\n%e = clamp(%d, min=-448.0, max=448.0)\n%q = cast(%e, dtype=f8e4m3)\n"};
}

Spelling int8() {
  return {
      .scale = "%c = clamp(%m, min=1e-10)\n%s = div_scalar(%c, value=127.0)\n",
      .codes = "%d = div(%r, %s)\n%e = clamp(%d, min=-128.0, max=127.0)\n%n = round(%e)\n%q = cast(%n, dtype=i8)\n"};
}

Spelling with(Spelling spelling, std::string Spelling::*part, const std::string& text) {
  spelling.*part = text;
  return spelling;
}

// The same changes for both, in the parts that both have.
std::vector<Spelling> alike(const Spelling& plain) {
  const bool is_int8 = plain.codes.find("i8") != std::string::npos;
  const std::string k = is_int8 ? "127.0" : "448.0";
  std::vector<Spelling> all = {
      plain,
      with(plain, &Spelling::dtype, "f32"),
      with(plain, &Spelling::dtype, "f16"),
      with(plain, &Spelling::values, "%g = reshape(%x, shape=[6, 2, 64])\n%r = cast(%g, dtype=f32)\n"),
      with(plain, &Spelling::largest, "%a = abs(%f)\n%b = reshape(%a, shape=[6, 2, 64])\n%m = amax(%b)\n"),
      with(plain, &Spelling::largest,
           "%a = abs(%x)\n%b = reshape(%a, shape=[6, 2, 64])\n%h = amax(%b)\n%m = cast(%h, dtype=f32)\n"),
      with(plain, &Spelling::largest, "%i = neg(%r)\n%b = maximum(%r, %i)\n%m = amax(%b)\n"),
      with(plain, &Spelling::largest, "%i = neg(%r)\n%b = maximum(%i, %r)\n%m = amax(%b)\n"),
      with(plain, &Spelling::scale,
           "%o = constant(values=[1e-10], shape=[1])\n%c = maximum(%m, %o)\n%s = div_scalar(%c, value=" + k + ")\n"),
      with(plain, &Spelling::scale,
           "%o = constant(values=[1e-10], shape=[1])\n%c = maximum(%o, %m)\n%s = div_scalar(%c, value=" + k + ")\n"),
      with(plain, &Spelling::scale,
           "%c = clamp(%m, min=1e-10)\n%t = div_scalar(%c, value=" + k + ")\n%s = clamp(%t, min=0.0)\n"),
      with(plain, &Spelling::scale,
           "%z = clamp(%m, min=0.0)\n%c = clamp(%z, min=1e-10)\n%s = div_scalar(%c, value=" + k + ")\n"),
      with(plain, &Spelling::scale, "%c = clamp(%m, min=0.001)\n%s = div_scalar(%c, value=" + k + ")\n"),
      with(plain, &Spelling::scale, "%t = div_scalar(%m, value=" + k + ")\n%s = clamp(%t, min=0.001)\n"),
      with(plain, &Spelling::give, "%q2 = reshape(%q, shape=[6, 128])\n")};
  return all;
}

std::vector<Spelling> equal_spellings() {
  std::vector<Spelling> all = alike(fp8());
  const Spelling of_int8 = int8(), of_fp8 = fp8();
  for (const Spelling& spelling : alike(of_int8)) all.push_back(spelling);
  const auto code = [&](const Spelling& plain, const std::string& text) {
    all.push_back(with(plain, &Spelling::codes, text));
  };
  code(of_fp8, "%d = div(%r, %s)\n%q = cast(%d, dtype=f8e4m3)\n");
  code(of_fp8,
       "%d = div(%r, %s)\n%h = clamp(%d, max=448.0)\n%e = clamp(%h, min=-448.0)\n%q = cast(%e, dtype=f8e4m3)\n");
  code(of_fp8,
       "%o = constant(values=[-448.0], shape=[1])\n%p = constant(values=[448.0], shape=[1])\n%d = div(%r, %s)\n"
       "%h = maximum(%d, %o)\n%e = minimum(%p, %h)\n%q = cast(%e, dtype=f8e4m3)\n");
  code(of_int8, "%d = div(%r, %s)\n%n = round(%d)\n%q = cast(%n, dtype=i8)\n");
  code(of_int8, "%d = div(%r, %s)\n%n = round(%d)\n%e = clamp(%n, min=-128.0, max=127.0)\n%q = cast(%e, dtype=i8)\n");
  code(of_int8, "%d = div(%r, %s)\n%e = clamp(%d, min=-127.0, max=127.0)\n%n = round(%e)\n%q = cast(%n, dtype=i8)\n");
  code(of_int8, "%d = div(%r, %s)\n%h = clamp(%d, min=-128.0)\n%e = clamp(%h, max=127.0)\n%q = cast(%e, dtype=i8)\n");
  code(of_int8, "%d = div(%r, %s)\n%n = trunc(%d)\n%q = cast(%n, dtype=i8)\n");
  // The codes' view before their cast.
  Spelling view = of_fp8;
  view.codes = "%d = div(%r, %s)\n%e = clamp(%d, min=-448.0, max=448.0)\n%v = reshape(%e, shape=[6, 128])\n";
  view.give = "%q2 = cast(%v, dtype=f8e4m3)\n";
  all.push_back(view);
  // Scales by the reciprocal of 448, as one of the op's attributes says; scales that are powers of two.
  all.push_back(
      with(of_fp8, &Spelling::scale, "%c = clamp(%m, min=1e-10)\n%s = mul_scalar(%c, value=0.002232142857142857)\n"));
  const std::string power =
      "%c = clamp(%m, min=1e-10)\n%t = div_scalar(%c, value=448.0)\n%u = clamp(%t, min=1e-10)\n"
      "%s = round_to_power_of_two(%u)\n";
  all.push_back(with(of_fp8, &Spelling::scale, power));
  code(with(of_fp8, &Spelling::scale, power), "%i = reciprocal(%s)\n%d = mul(%r, %i)\n%q = cast(%d, dtype=f8e4m3)\n");
  return all;
}

std::vector<Spelling> other_spellings() {
  const Spelling of_fp8 = fp8(), of_int8 = int8();
  std::vector<Spelling> all = {
      with(of_int8, &Spelling::scale, "%c = clamp(%m, min=1e-10)\n%s = mul_scalar(%c, value=0.007874015748031496)\n"),
      with(of_fp8, &Spelling::scale, "%c = add_scalar(%m, value=1e-10)\n%s = div_scalar(%c, value=448.0)\n"),
      with(of_fp8, &Spelling::scale, "%c = clamp(%m, min=1e-10)\n%s = div_scalar(%c, value=440.0)\n"),
      with(of_fp8, &Spelling::largest, "%m = amax(%r)\n"),
      with(of_fp8, &Spelling::codes,
           "%i = reciprocal(%s)\n%d = mul(%r, %i)\n%e = clamp(%d, min=-448.0, max=448.0)\n%q = cast(%e, "
           "dtype=f8e4m3)\n"),
      with(of_fp8, &Spelling::codes,
           "%d = div(%r, %s)\n%e = clamp(%d, min=-400.0, max=400.0)\n%q = cast(%e, dtype=f8e4m3)\n"),
      with(of_int8, &Spelling::codes,
           "%d = div(%r, %s)\n%e = clamp(%d, min=-126.0, max=127.0)\n%n = round(%e)\n%q = cast(%n, dtype=i8)\n")};
  // A scale that may be zero: without the clamp the quotients are infinite.
  Spelling no_minimum = with(of_fp8, &Spelling::scale, "%s = div_scalar(%m, value=448.0)\n");
  no_minimum.codes = "%d = div(%r, %s)\n%q = cast(%d, dtype=f8e4m3)\n";
  all.push_back(no_minimum);
  return all;
}

// Groups of ordinary values, of zeros of both signs, of the least and the largest numbers, of NaN and of infinities.
Tensor inputs_of(DType dtype) {
  std::vector<float> values(kRows * kColumns);
  std::uint32_t state = 7;
  for (std::size_t i = 0; i < values.size(); ++i) {
    state = state * 1664525 + 1013904223;
    const float number = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
    const std::size_t group = i / kGroup;
    const float largest = dtype == DType::f16 ? 60000.0F : 3e38F;
    const float scale[] = {1, 448, 1e-3F, 1e-12F, 0, largest, 1e-30F, 127, 1, 1, 1e-40F, 1e5F / 3};
    values[i] = number * scale[group];
  }
  values[8 * kGroup + 3] = std::numeric_limits<float>::quiet_NaN();
  values[9 * kGroup + 5] = -std::numeric_limits<float>::infinity();
  values[7 * kGroup] = 127;
  values[7 * kGroup + 1] = -127;
  values[1 * kGroup] = -448;
  Tensor tensor = Tensor::empty(Meta::tensor(dtype, {kRows, kColumns}));
  convert_row(DType::f32, reinterpret_cast<const std::byte*>(values.data()), dtype, tensor.data(),
              static_cast<std::int64_t>(values.size()));
  return tensor;
}

class EqualSpellings : public testing::Test {
 protected:
  EqualSpellings() : context_(test_context()), passes_(pass_context(*context_, {1, 8})) {}

  std::shared_ptr<Graph> raised(const std::string& text) {
    const auto graph = parse_graph(text, context_->ops);
    noop_elimination(*graph, passes_);
    common_subexpression_elimination(*graph, passes_);
    dead_code_elimination(*graph, passes_);
    raise(*graph, passes_);
    return graph;
  }

  std::vector<Tensor> results_of(const Graph& graph) {
    Interpreter interpreter(*context_);
    std::vector<Tensor> results;
    const Tensor x = inputs_of(graph.inputs()[0]->meta.dtype);
    for (const Value& value : run_graph(graph, interpreter, {interpreter.value(x)})) results.push_back(value.tensor());
    return results;
  }

  void expect_same_bits(const std::string& text, const Graph& graph) {
    const std::vector<Tensor> wanted = results_of(*parse_graph(text, context_->ops)), came = results_of(graph);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(difference(wanted[i], came[i], {}, true), "") << i;
  }

  std::shared_ptr<Context> context_;
  PassContext passes_;
};

TEST_F(EqualSpellings, AreRaisedAndGiveTheSameBits) {
  for (const Spelling& spelling : equal_spellings()) {
    SCOPED_TRACE(spelling.text());
    const auto graph = raised(spelling.text());
    ASSERT_EQ(graph->nodes().size(), 1u) << display(*graph);
    EXPECT_TRUE(graph->nodes().front()->name.starts_with("per_token_group_quant_")) << display(*graph);
    expect_same_bits(spelling.text(), *graph);
  }
}

TEST_F(EqualSpellings, OthersAreLeftAndGiveTheSameBits) {
  for (const Spelling& spelling : other_spellings()) {
    SCOPED_TRACE(spelling.text());
    const auto graph = raised(spelling.text());
    EXPECT_GT(graph->nodes().size(), 1u) << display(*graph);
    expect_same_bits(spelling.text(), *graph);
  }
}

}  // namespace weft::equal_spellings_test
