// Rewrites that are right around 1 and wrong at an edge are refused with the values that show it.

#include <algorithm>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/check/edge_values.h"
#include "compiler/check/pattern_check.h"
#include "ir/parse.h"
#include "tests/test_context.h"

namespace weft::pattern_edges_test {

const Context& context() {
  static const std::shared_ptr<Context> shared = test_context();
  return *shared;
}

PatternCheck check_of(const std::string& header, const std::string& before, const std::string& after) {
  const std::string text =
      "pattern p(" + header + ") {\n before {\n" + before + "\n }\n after {\n" + after + "\n }\n}\n";
  const auto definitions = parse_definitions(text, context().ops, "pattern");
  return check_pattern(*std::get<std::shared_ptr<Pattern>>(definitions.at(0)), context(), false);
}

struct Rewrite {
  const char* what;
  const char* header;
  const char* before;
  const char* after;
  const char* shown = "";  // a part of the counterexample
};

const char* const kSame = "%y = mul_scalar(?x, value=1.0)\nreturn %y";

const Rewrite kWrong[] = {
    {"beyond the bound of a clamp", "?x", "%y = clamp(?x, max=1e30)\nreturn %y", kSame,
     "instead of 1e+30, where ?x is"},
    {"NaN", "?x", "%y = replace_nan(?x, value=0.0)\nreturn %y", kSame, "is nan instead of 0, where ?x is nan"},
    {"the range of f16", "?x: bf16[?n, ?d]", "%a = cast(?x, dtype=f16)\n%y = cast(%a, dtype=bf16)\nreturn %y", kSame},
    {"-0", "?x", "%y = add_scalar(?x, value=0.0)\nreturn %y", kSame, "is -0 instead of 0, where ?x is -0"},
    {"above 2^24", "?x: i32[?n]", "%a = cast(?x, dtype=f32)\n%y = cast(%a, dtype=i32)\nreturn %y",
     "%y = clone(?x)\nreturn %y", "where ?x is"},
    {"above 2^53", "?x: i64[...]", "%a = cast(?x, dtype=f64)\n%y = cast(%a, dtype=i64)\nreturn %y",
     "%y = clone(?x)\nreturn %y"},
    {"integers that wrap", "?x: i64[...]", "%a = cast(?x, dtype=i32)\n%y = cast(%a, dtype=i64)\nreturn %y",
     "%y = clone(?x)\nreturn %y"},
    {"i8 that saturates", "?x: f32[...]", "%a = cast(?x, dtype=i8)\n%y = cast(%a, dtype=f32)\nreturn %y",
     "%y = trunc(?x)\nreturn %y"},
    {"x / x", "?x", "%y = div(?x, ?x)\nreturn %y",
     "%a = mul_scalar(?x, value=0.0)\n%y = add_scalar(%a, value=1.0)\nreturn %y"},
    {"x - x", "?x", "%y = sub(?x, ?x)\nreturn %y",
     "%a = replace_nan(?x, value=0.0)\n%b = clamp(%a, min=0.0, max=0.0)\n%y = mul_scalar(%b, value=1.0)\nreturn %y"},
    {"equal pairs", "?x, ?y", "%a = sub(?x, ?y)\n%y = neg(%a)\nreturn %y", "%y = sub(?y, ?x)\nreturn %y",
     "is 0 instead of -0"},
    {"ties of maximum", "?x", "%n = neg(?x)\n%y = maximum(?x, %n)\nreturn %y", "%y = abs(?x)\nreturn %y"},
    {"NaN in the second operand", "?x, ?y", "%y = maximum(?x, ?y)\nreturn %y",
     "%a = replace_nan(?y, value=-inf)\n%y = maximum(?x, %a)\nreturn %y", "nan"},
    {"subnormal numbers", "?x",
     "%a = mul_scalar(?x, value=7.888609052210118e-31)\n%y = mul_scalar(%a, value=1.2676506002282294e+30)\nreturn %y",
     kSame},
    {"subnormal numbers, rounded", "?x: f32[...]",
     "%a = mul_scalar(?x, value=1e-36)\n%b = mul(%a, ?x)\n%c = add(%b, ?x)\n%d = mul_scalar(%c, value=1e-20)\n%y "
     "= mul_scalar(%d, value=1e20)\nreturn %y",
     kSame},
    {"half of the least number", "?x", "%a = mul_scalar(?x, value=0.5)\n%y = mul_scalar(%a, value=2.0)\nreturn %y",
     kSame},
    {"overflow of f16", "?x: f16[...]", "%a = mul_scalar(?x, value=4.0)\n%y = mul_scalar(%a, value=0.25)\nreturn %y",
     kSame, "is 65504 instead of inf"},
    {"overflow of a sum", "?x: f16[...], ?y: f16[...]", "%a = add(?x, ?y)\n%y = mul_scalar(%a, value=0.5)\nreturn %y",
     "%a = mul_scalar(?x, value=0.5)\n%b = mul_scalar(?y, value=0.5)\n%y = add(%a, %b)\nreturn %y"},
    {"ties of rounding", "?x", "%y = round(?x)\nreturn %y",
     "%a = add_scalar(?x, value=0.5)\n%y = trunc(%a)\nreturn %y"},
    {"squares", "?x", "%a = mul(?x, ?x)\n%y = sqrt(%a)\nreturn %y", "%y = abs(?x)\nreturn %y"},
    {"1 / (1 / x)", "?x", "%a = reciprocal(?x)\n%y = reciprocal(%a)\nreturn %y", kSame},
    {"the end of exp", "?x", "%y = sigmoid(?x)\nreturn %y",
     "%a = exp(?x)\n%b = add_scalar(%a, value=1.0)\n%y = div(%a, %b)\nreturn %y"},
    {"softmax without its maximum", "?x: f32[...]", "%y = softmax(?x)\nreturn %y",
     "%a = exp(?x)\n%b = sum(%a)\n%y = div(%a, %b)\nreturn %y"},
    {"a bound by one step", "?x, ?a, ?b", "%y = where_at_most(?x, ?a, ?b, bound=0.25)\nreturn %y",
     "%y = where_at_most(?x, ?a, ?b, bound=0.25000003)\nreturn %y"},
    {"a far bound", "?x, ?a, ?b", "%y = where_at_most(?x, ?a, ?b, bound=77.0)\nreturn %y", "%y = clone(?a)\nreturn %y"},
    {"an attribute", "?x, ?v: float", "%a = mul_scalar(?x, value=?v)\n%y = mul_scalar(%a, value=0.0)\nreturn %y",
     "%y = mul_scalar(?x, value=0.0)\nreturn %y"},
    {"one width", "?x: ?T[?n, ?d]", "%y = mean(?x)\nreturn %y",
     "%a = sum(?x)\n%y = div_scalar(%a, value=200.0)\nreturn %y"},
    {"one dtype", "?x: ?T[...]", "%y = cast(?x, dtype=f32)\nreturn %y",
     "%a = cast(?x, dtype=bf16)\n%y = cast(%a, dtype=f32)\nreturn %y"},
    {"infinities in a row", "?x: f32[?n, ?d]", "%y = amax(?x)\nreturn %y",
     "%a = clamp(?x, min=-1e30)\n%y = amax(%a)\nreturn %y"},
    {"f8 codes", "?x: f8e4m3[...]", "%y = cast(?x, dtype=f32)\nreturn %y",
     "%a = cast(?x, dtype=f32)\n%y = clamp(%a, min=-240.0, max=240.0)\nreturn %y"},
};

TEST(PatternEdges, RefusesWhatIsWrongAtAnEdge) {
  for (const Rewrite& rewrite : kWrong) {
    SCOPED_TRACE(rewrite.what);
    try {
      const PatternCheck check = check_of(rewrite.header, rewrite.before, rewrite.after);
      EXPECT_NE(check.failure.find("result 0 of after"), std::string::npos) << check.failure;
      EXPECT_NE(check.failure.find(", where ?x"), std::string::npos) << check.failure;
      EXPECT_NE(check.failure.find(rewrite.shown), std::string::npos) << check.failure;
    } catch (const UserError& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

const Rewrite kRight[] = {
    {"a gate", "?x", "%y = silu(?x)\nreturn %y", "%a = sigmoid(?x)\n%y = mul(?x, %a)\nreturn %y"},
    {"two signs", "?x", "%a = neg(?x)\n%y = neg(%a)\nreturn %y", kSame},
    {"abs", "?x", "%a = neg(?x)\n%y = abs(%a)\nreturn %y", "%y = abs(?x)\nreturn %y"},
    {"a wider dtype", "?x: bf16[...]", "%a = cast(?x, dtype=f32)\n%y = cast(%a, dtype=bf16)\nreturn %y", kSame},
    {"a wider integer", "?x: i8[...]", "%a = cast(?x, dtype=f32)\n%y = cast(%a, dtype=i8)\nreturn %y",
     "%y = clone(?x)\nreturn %y"},
    {"twice", "?x", "%y = mul_scalar(?x, value=2.0)\nreturn %y", "%y = add(?x, ?x)\nreturn %y"},
    {"one clamp", "?x", "%a = clamp(?x, min=-2.0, max=3.0)\n%y = clamp(%a, min=-5.0, max=3.0)\nreturn %y",
     "%y = clamp(?x, min=-2.0, max=3.0)\nreturn %y"},
    {"maximum of one", "?x", "%y = maximum(?x, ?x)\nreturn %y", kSame},
    {"mean", "?x: ?T[?n, ?d]", "%y = mean(?x)\nreturn %y", "%y = mean(?x)\nreturn %y"},
};

TEST(PatternEdges, AcceptsWhatIsRightEverywhere) {
  for (const Rewrite& rewrite : kRight) {
    SCOPED_TRACE(rewrite.what);
    const PatternCheck check = check_of(rewrite.header, rewrite.before, rewrite.after);
    EXPECT_EQ(check.failure, "");
  }
}

// The variants of one pattern: rows of one element, none at all, odd widths, other ranks, each dtype.
TEST(PatternEdges, TriesOtherTypesThanThoseOfSamples) {
  const PatternCheck check = check_of("?x", "%a = neg(?x)\n%y = neg(%a)\nreturn %y", kSame);
  EXPECT_EQ(check.failure, "");
  EXPECT_EQ(check.exact, check.samples);
  for (const char* dtype : {"f64", "f32", "bf16", "f16", "f8e4m3", "f8e5m2"})
    EXPECT_EQ(std::count(check.dtypes.begin(), check.dtypes.end(), dtype), 1) << dtype;
  for (const char* shape : {"[6, 41]", "[6, 1]", "[6, 0]", "[1, 41]", "[6, 7]", "[6, 82]", "[41]", "[2, 6, 41]"})
    EXPECT_EQ(std::count(check.shapes.begin(), check.shapes.end(), shape), 1) << shape;
  for (const char* part : {"tried on", "compared bit for bit", "bf16", "[6, 41]", "NaN", "subnormal"})
    EXPECT_NE(check.text().find(part), std::string::npos) << check.text();
}

TEST(PatternEdges, FitsSamplesToStatedTypes) {
  const PatternCheck check =
      check_of("?x: f16[?n, 77, 3]", "%a = neg(?x)\n%y = neg(%a)\nreturn %y", "%y = abs(?x)\nreturn %y");
  EXPECT_NE(check.failure.find("with ?x: f16[3, 77, 3]"), std::string::npos) << check.failure;
}

// All bits of what the fill holds, each element once.
std::set<std::uint64_t> bits_in(const Tensor& tensor) {
  std::set<std::uint64_t> bits;
  const std::int64_t size = bytes_of(tensor.meta.dtype, 1);
  for (std::int64_t i = 0; i < element_count(tensor.meta.shape).number(); ++i) {
    std::uint64_t element = 0;
    std::memcpy(&element, tensor.data() + i * size, static_cast<std::size_t>(size));
    bits.insert(element);
  }
  return bits;
}

TEST(EdgeValues, ShowEachEdgeWithinTheirRounds) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8,
                            DType::i8, DType::f8e4m3, DType::boolean}) {
    SCOPED_TRACE(std::string(dtype_text(dtype)));
    const double own[] = {0.3};
    const EdgeValues edges(dtype, own);
    const Tensor sample = Tensor::empty(Meta::tensor(dtype, {Dim(3), Dim(7)}));
    std::set<std::uint64_t> seen;
    for (std::int64_t round = 0; round < edges.rounds(EdgeFill::each, sample, 1); ++round)
      seen.merge(bits_in(edges.filled(sample, EdgeFill::each, round, 0, 1)));
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), edges.count());
    EXPECT_EQ(bits_in(edges.filled(sample, EdgeFill::sample, 0, 0, 1)).size(), 1u);
  }
  const EdgeValues half(DType::f16, {});
  std::set<std::uint64_t> seen;
  const Tensor sample = Tensor::empty(Meta::tensor(DType::f16, {Dim(200)}));
  seen.merge(bits_in(half.filled(sample, EdgeFill::each, 0, 0, 1)));
  for (const std::uint64_t bits :
       {0x0000, 0x8000, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x0400, 0x0001, 0x8001, 0x7c00, 0xfc00, 0x7e00})
    EXPECT_TRUE(seen.contains(bits)) << bits;
}

TEST(EdgeValues, PairsHoldEqualAndOppositeOnes) {
  const EdgeValues edges(DType::f32, {});
  const Tensor sample = Tensor::empty(Meta::tensor(DType::f32, {Dim(40), Dim(40)}));
  const Tensor one = edges.filled(sample, EdgeFill::opposite, 0, 0, 2),
               other = edges.filled(sample, EdgeFill::opposite, 0, 1, 2);
  for (std::int64_t i = 0; i < 1600; ++i)
    ASSERT_EQ(one.as<std::uint32_t>()[i] ^ other.as<std::uint32_t>()[i], 0x80000000u) << i;
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  std::set<std::uint32_t> alone;
  for (std::int64_t round = 0; round < edges.rounds(EdgeFill::pairs, sample, 2); ++round) {
    const Tensor x = edges.filled(sample, EdgeFill::pairs, round, 0, 2),
                 y = edges.filled(sample, EdgeFill::pairs, round, 1, 2);
    for (std::int64_t i = 0; i < 1600; ++i) pairs.emplace(x.as<std::uint32_t>()[i], y.as<std::uint32_t>()[i]);
  }
  for (const auto& [x, y] : pairs) alone.insert(x);
  EXPECT_EQ(pairs.size(), alone.size() * alone.size());
}

}  // namespace weft::pattern_edges_test
