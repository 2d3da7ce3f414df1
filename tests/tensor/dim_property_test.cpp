// Laws of Dim on random expressions: arithmetic agrees with numbers, text parses back, intervals contain the values.

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "tensor/dim.h"
#include "tensor/dim_parser.h"
#include "tests/property.h"

namespace weft::dim_property_test {

constexpr int kCases = 1500;
const std::array<std::string, 3> kSymbols = {"s0", "s1", "n"};

std::int64_t floor_divide(std::int64_t a, std::int64_t k) { return a / k - (a % k < 0 ? 1 : 0); }

// One step of a stack machine that builds an expression; any list of steps is valid.
struct Step {
  int kind = 0;
  int number = 0;
};
struct Expression {
  std::vector<Step> steps;
};

// Values of the symbols.
struct Numbers {
  std::array<int, 3> of = {};
  Bindings bindings() const {
    Bindings bindings;
    for (std::size_t i = 0; i < of.size(); ++i) bindings[kSymbols[i]] = of[i];
    return bindings;
  }
};

// An expression and its value, which is computed with plain numbers.
struct Sample {
  Dim dim;
  std::int64_t value = 0;
  int degree = 0;
};

Sample leaf(const Step& step, const Numbers& numbers) {
  if (step.kind % 2 == 0) return {Dim(step.number), step.number, 1};
  const auto symbol = static_cast<std::size_t>(step.number + 9) % kSymbols.size();
  return {Dim::symbol(kSymbols[symbol]), numbers.of[symbol], 1};
}

Sample divided(const Sample& a, const Step& step) {
  const std::int64_t k = 1 + (step.number + 9) % 8;
  const std::int64_t up = floor_divide(a.value + k - 1, k);
  if (step.kind == 8) return {align(a.dim, k), up * k, a.degree};
  if (step.kind == 9) return {ceildiv(a.dim, k), up, a.degree};
  return {floordiv(a.dim, k), floor_divide(a.value, k), a.degree};
}

Sample joined(const Sample& a, const Sample& b, int kind) {
  constexpr int kMaxDegree = 4;  // beyond it a product becomes a sum, so that numbers stay in 64 bits
  if (kind == 6) return {a.dim - b.dim, a.value - b.value, std::max(a.degree, b.degree)};
  if (kind == 7 && a.degree + b.degree <= kMaxDegree) return {a.dim * b.dim, a.value * b.value, a.degree + b.degree};
  return {a.dim + b.dim, a.value + b.value, std::max(a.degree, b.degree)};
}

Sample sample_of(const Expression& expression, const Numbers& numbers) {
  std::vector<Sample> stack = {Sample()};
  for (const Step& step : expression.steps) {
    if (step.kind < 5) {
      stack.push_back(leaf(step, numbers));
    } else if (step.kind >= 8) {
      stack.back() = divided(stack.back(), step);
    } else if (stack.size() > 1) {
      const Sample top = stack.back();
      stack.pop_back();
      stack.back() = joined(stack.back(), top, step.kind);
    }
  }
  while (stack.size() > 1) {
    const Sample top = stack.back();
    stack.pop_back();
    stack.back() = joined(stack.back(), top, 5);
  }
  return stack.back();
}

void showValue(const Expression& expression, std::ostream& out) { out << sample_of(expression, {}).dim.text(); }

void showValue(const Numbers& numbers, std::ostream& out) { rc::show(numbers.of, out); }

}  // namespace weft::dim_property_test

namespace rc {

template <>
struct Arbitrary<weft::dim_property_test::Expression> {
  static Gen<weft::dim_property_test::Expression> arbitrary() {
    const auto step = gen::build<weft::dim_property_test::Step>(
        gen::set(&weft::dim_property_test::Step::kind, weft::number_in(0, 11)),
        gen::set(&weft::dim_property_test::Step::number, weft::number_in(-9, 10)));
    return gen::build<weft::dim_property_test::Expression>(
        gen::set(&weft::dim_property_test::Expression::steps, weft::at_most(40, step)));
  }
};

template <>
struct Arbitrary<weft::dim_property_test::Numbers> {
  static Gen<weft::dim_property_test::Numbers> arbitrary() {
    return gen::build<weft::dim_property_test::Numbers>(
        gen::set(&weft::dim_property_test::Numbers::of, gen::container<std::array<int, 3>>(weft::number_in(0, 50))));
  }
};

}  // namespace rc

namespace weft::dim_property_test {

TEST(DimProperty, EvaluatesAsTheNumbersDo) {
  check_property(kCases, [](const Expression& expression, const Numbers& numbers) {
    const Sample sample = sample_of(expression, numbers);
    RC_ASSERT(sample.dim.evaluate(numbers.bindings()) == sample.value);
  });
}

TEST(DimProperty, TextReadsBackTheSameDim) {
  int symbolic = 0;
  check_property(kCases, [&](const Expression& expression) {
    const Dim dim = sample_of(expression, {}).dim;
    const Dim parsed = parse_dim(dim.text());
    RC_ASSERT(parsed == dim);
    RC_ASSERT(parsed.text() == dim.text());
    symbolic += dim.is_number() ? 0 : 1;
  });
  EXPECT_GT(symbolic, kCases / 2);
}

TEST(DimProperty, KeepsTheLawsOfARing) {
  check_property(kCases, [](const Expression& x, const Expression& y, const Expression& z) {
    const Dim a = sample_of(x, {}).dim, b = sample_of(y, {}).dim, c = sample_of(z, {}).dim;
    try {
      RC_ASSERT(a + b == b + a);
      RC_ASSERT(a * b == b * a);
      RC_ASSERT((a + b) + c == a + (b + c));
      RC_ASSERT((a * b) * c == a * (b * c));
      RC_ASSERT((a + b) * c == a * c + b * c);
      RC_ASSERT(a - a == Dim(0));
      RC_ASSERT(a - b == a + b * -1);
    } catch (const UserError&) {
      RC_DISCARD("larger than a dim may be");
    }
  });
}

TEST(DimProperty, RangeHoldsEveryValue) {
  check_property(kCases, [](const Expression& expression, const Numbers& below, const Numbers& above) {
    Bounds bounds;
    Numbers numbers;
    for (std::size_t i = 0; i < kSymbols.size(); ++i) {
      const int lo = below.of[i] % 25 - 5, width = above.of[i] % 20;
      bounds[kSymbols[i]] = {lo, lo + width};
      numbers.of[i] = lo + *number_in(0, width + 1);
    }
    const Sample sample = sample_of(expression, numbers);
    const Interval range = sample.dim.range(bounds);
    RC_ASSERT(range.lo <= sample.value);
    RC_ASSERT(range.hi >= sample.value);
  });
}

TEST(DimProperty, ComparisonsNeverContradictValues) {
  int decided = 0;
  check_property(kCases, [&](const Expression& x, const Expression& y, const Numbers& numbers) {
    const Bounds bounds = {{"s0", {0, 49}}, {"s1", {0, 49}}, {"n", {0, 49}}};
    const Sample a = sample_of(x, numbers), b = sample_of(y, numbers);
    const Truth equal = compare_equal(a.dim, b.dim, bounds);
    const Truth less = compare_less_equal(a.dim, b.dim, bounds);
    if (equal != Truth::unknown) RC_ASSERT((equal == Truth::yes) == (a.value == b.value));
    if (less != Truth::unknown) RC_ASSERT((less == Truth::yes) == (a.value <= b.value));
    decided += less != Truth::unknown ? 1 : 0;
  });
  EXPECT_GT(decided, kCases / 10);
}

TEST(DimProperty, SubstitutionCommutesWithEvaluation) {
  check_property(kCases, [](const Expression& x, const Expression& y, const Numbers& numbers) {
    const Sample outer = sample_of(x, numbers), inner = sample_of(y, numbers);
    Bindings replaced = numbers.bindings();
    replaced["s0"] = inner.value;
    try {
      RC_ASSERT(outer.dim.substitute({{"s0", inner.dim}}).evaluate(numbers.bindings()) == outer.dim.evaluate(replaced));
    } catch (const UserError&) {
      RC_DISCARD("larger than a dim may be");
    }
  });
}

TEST(DimProperty, OrderIsTotal) {
  check_property(kCases, [](const Expression& x, const Expression& y, const Expression& z) {
    std::array<Dim, 3> dims = {sample_of(x, {}).dim, sample_of(y, {}).dim, sample_of(z, {}).dim};
    RC_ASSERT(Dim::compare(dims[0], dims[1]) == -Dim::compare(dims[1], dims[0]));
    RC_ASSERT((Dim::compare(dims[0], dims[1]) == 0) == (dims[0].text() == dims[1].text()));
    std::sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return Dim::compare(a, b) < 0; });
    RC_ASSERT(Dim::compare(dims[0], dims[2]) <= 0);
  });
}

}  // namespace weft::dim_property_test
