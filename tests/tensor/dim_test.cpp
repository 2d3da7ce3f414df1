#include "tensor/dim.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/dim_terms.h"
#include "tests/thrown_message.h"

namespace weft::dim_test {

const Dim s0 = Dim::symbol("s0");
const Dim s1 = Dim::symbol("s1");

TEST(Dim, PrintsSumOfProductsWithConstantLast) {
  EXPECT_EQ(Dim(0).text(), "0");
  EXPECT_EQ(Dim(-7).text(), "-7");
  EXPECT_EQ((Dim(16) + s0 * 2).text(), "2*s0 + 16");
  EXPECT_EQ((s1 + s0).text(), "s0 + s1");
  EXPECT_EQ((s1 * s0 * 3 - s1 - 4).text(), "3*s0*s1 - s1 - 4");
  EXPECT_EQ((Dim(5) - s0).text(), "-1*s0 + 5");
  EXPECT_EQ(((s0 + 1) * (s0 - 1)).text(), "s0*s0 - 1");
  EXPECT_EQ(shape_text({s0, 576}), "[s0, 576]");
  EXPECT_EQ(shape_text({}), "[]");
}

TEST(Dim, PrintsTheShortestOfAlignCeildivAndFloordiv) {
  EXPECT_EQ(align(s0, 4).text(), "align(s0, 4)");
  EXPECT_EQ((align(s0, 4) * 2).text(), "2*align(s0, 4)");
  EXPECT_EQ(ceildiv(s0, 128).text(), "ceildiv(s0, 128)");
  EXPECT_EQ(floordiv(s0, 128).text(), "floordiv(s0, 128)");
  EXPECT_EQ(floordiv(s0 + 1, 4).text(), "floordiv(s0 + 1, 4)");
  EXPECT_EQ(floordiv(s0 + 3, 4), ceildiv(s0, 4));
  EXPECT_EQ(ceildiv(s0, 4) * 4, align(s0, 4));
}

TEST(Dim, FoldsFunctionsOfNumbers) {
  EXPECT_EQ(align(Dim(5), 4), Dim(8));
  EXPECT_EQ(align(Dim(8), 4), Dim(8));
  EXPECT_EQ(ceildiv(Dim(5), 4), Dim(2));
  EXPECT_EQ(floordiv(Dim(5), 4), Dim(1));
  EXPECT_EQ(floordiv(Dim(-5), 4), Dim(-2));
  EXPECT_EQ(ceildiv(Dim(-5), 4), Dim(-1));
  EXPECT_EQ(align(Dim(-5), 4), Dim(-4));
  EXPECT_EQ(ceildiv(Dim(INT64_MAX), INT64_MAX), Dim(1));
  EXPECT_EQ(ceildiv(Dim(INT64_MAX), 2), Dim(INT64_MAX / 2 + 1));
}

TEST(Dim, MovesWhatIsDivisibleOutOfFunctions) {
  EXPECT_EQ(align(s0, 1), s0);
  EXPECT_EQ(floordiv(s0 * 32, 32), s0);
  EXPECT_EQ(ceildiv(s0 * 32, 32), s0);
  EXPECT_EQ(align(s0 * 4, 4), s0 * 4);
  EXPECT_EQ(align(s0 + 8, 4), align(s0, 4) + 8);
  EXPECT_EQ(floordiv(s0 * 2, 4), floordiv(s0, 2));
  EXPECT_EQ(floordiv(s0 * 2 + 3, 4), ceildiv(s0, 2));
  EXPECT_EQ(align(s0 * 2, 4), align(s0, 2) * 2);
}

TEST(Dim, MergesFunctionsOfFunctions) {
  EXPECT_EQ(floordiv(floordiv(s0, 3), 5), floordiv(s0, 15));
  EXPECT_EQ(ceildiv(ceildiv(s0, 3), 5), ceildiv(s0, 15));
  EXPECT_EQ(align(align(s0, 8), 4), align(s0, 8));
  EXPECT_EQ(align(align(s0, 4), 8), align(s0, 8));
  EXPECT_EQ(floordiv(align(s0, 4), 4), ceildiv(s0, 4));
}

TEST(Dim, IsANumberOnceSymbolsCancel) {
  EXPECT_TRUE((s0 - s0).is_number());
  EXPECT_TRUE((align(s0, 4) - align(s0, 4) + 3).is_number());
  EXPECT_EQ((s0 * 0).number(), 0);
  EXPECT_THROW(s0.number(), InternalError);
}

TEST(Dim, NamesOnlyALoneSymbol) {
  EXPECT_EQ(s0.symbol_name(), "s0");
  EXPECT_EQ((s0 + 1).symbol_name(), "");
  EXPECT_EQ((s0 * 2).symbol_name(), "");
  EXPECT_EQ((s0 * s1).symbol_name(), "");
  EXPECT_EQ(align(s0, 4).symbol_name(), "");
  EXPECT_EQ(Dim(3).symbol_name(), "");
  EXPECT_EQ(s0.multiplied_symbol_name(), "s0");
  EXPECT_EQ((s0 * 2).multiplied_symbol_name(), "s0");
  for (const Dim& other : {s0 * -2, s0 * 2 + 1, s0 * s1, s0 + s1, align(s0, 4) * 2, Dim(3)})
    EXPECT_EQ(other.multiplied_symbol_name(), "") << other.text();
}

TEST(Dim, RefusesSymbolsThatAreNoWords) {
  for (const char* name : {"", "0s", "a b", "s-0", "align", "none", "f32", "q4_0", "?", "?1"})
    EXPECT_THROW(Dim::symbol(name), UserError) << name;
  for (const char* name : {"s0", "tokens", "_", "?n", "S_1"}) EXPECT_EQ(Dim::symbol(name).text(), name);
}

TEST(Dim, RefusesDivisorsBelowOne) {
  EXPECT_THROW(align(s0, 0), UserError);
  EXPECT_THROW(ceildiv(s0, -1), UserError);
  EXPECT_THROW(floordiv(Dim(4), 0), UserError);
}

TEST(Dim, RefusesArithmeticThatLeaves64Bits) {
  const Dim largest(INT64_MAX);
  const Dim smallest(INT64_MIN);
  EXPECT_THROW(largest + 1, UserError);
  EXPECT_THROW(smallest - 1, UserError);
  EXPECT_THROW(largest * 2, UserError);
  EXPECT_THROW(Dim(0) - smallest, UserError);
  EXPECT_THROW(align(largest, 4), UserError);
  EXPECT_THROW(s0 * INT64_MAX * 2, UserError);
  EXPECT_THROW((s0 + 1) * INT64_MAX + 1, UserError);
  EXPECT_THROW((s0 * 2).evaluate({{"s0", INT64_MAX}}), UserError);
  EXPECT_THROW((s0 * s0 * s0 * s0).evaluate({{"s0", INT64_MAX}}), UserError);
  EXPECT_EQ((s0 * 4 - s1 * 4).evaluate({{"s0", INT64_MAX}, {"s1", INT64_MAX - 1}}), 4);
  EXPECT_EQ(ceildiv(s0, 4).evaluate({{"s0", INT64_MAX}}), INT64_MAX / 4 + 1);
}

TEST(Dim, PrintsTheSmallestNumberAsItself) {
  EXPECT_EQ((s0 * INT64_MIN).text(), "-9223372036854775808*s0");
  EXPECT_EQ((s0 + INT64_MIN).text(), "s0 + -9223372036854775808");
}

TEST(Dim, RefusesExpressionsThatGrowWithoutBound) {
  Dim sum(1);
  for (int i = 0; i < 8; ++i) sum = sum + Dim::symbol("s" + std::to_string(i));
  EXPECT_THROW(sum * sum * sum * sum * sum * sum, UserError);
  Dim power = s0;
  EXPECT_THROW(for (std::size_t i = 0; i < kMaxDimDegree; ++i) power = power * s0, UserError);
  Dim nested = s0;
  EXPECT_THROW(for (int i = 0; i < 64; ++i) nested = floordiv(nested + s1, 3), UserError);
  Dim doubled = s0;
  EXPECT_THROW(for (int i = 0; i < 31; ++i) doubled = floordiv(doubled, 3) * (s0 + 1) + s1, UserError);
}

TEST(Dim, EvaluatesUnderBindings) {
  const Dim dim = align(s0 + s1, 4) * 2 + floordiv(s1, 3) - 1;
  EXPECT_EQ(dim.evaluate({{"s0", 5}, {"s1", 7}}), 2 * 12 + 2 - 1);
  EXPECT_NE(message_of([&] { dim.evaluate({{"s0", 5}}); }).find("s1"), std::string::npos);
}

TEST(Dim, CollectsSymbolsInsideFunctions) {
  std::set<std::string> symbols;
  (align(s0 * s1, 4) + Dim::symbol("n")).collect_symbols(symbols);
  EXPECT_EQ(symbols, (std::set<std::string>{"n", "s0", "s1"}));
}

TEST(Dim, SubstitutesInsideFunctions) {
  const Dim dim = align(s0, 4) * s1 + s0;
  EXPECT_EQ(dim.substitute({{"s0", s1 * 4}}), s1 * s1 * 4 + s1 * 4);
  EXPECT_EQ(dim.substitute({{"s0", Dim(5)}, {"s1", Dim(2)}}), Dim(21));
  EXPECT_EQ(dim.substitute({{"s0", s1}, {"s1", s0}}), align(s1, 4) * s0 + s1);
}

TEST(Dim, CountsElements) {
  EXPECT_EQ(element_count({}), Dim(1));
  EXPECT_EQ(element_count({s0, 9, 64}), s0 * 576);
  EXPECT_THROW(element_count({INT64_MAX, 2}), UserError);
}

}  // namespace weft::dim_test
