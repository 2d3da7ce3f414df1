// Laws of Dim on random expressions: arithmetic agrees with numbers, text reads back, intervals hold the values.

#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/dim.h"
#include "tensor/dim_parser.h"
#include "tests/tensor/random_source.h"

namespace weft {
namespace {

constexpr std::uint64_t kCases = 3000;
const std::array<std::string, 3> kSymbols = {"s0", "s1", "n"};

std::int64_t floor_divide(std::int64_t a, std::int64_t k) { return a / k - (a % k < 0 ? 1 : 0); }

// An expression together with its value, computed beside it in plain numbers.
struct Sample {
  Dim dim;
  std::int64_t value = 0;
};

Bindings random_bindings(RandomSource& random) {
  Bindings bindings;
  for (const std::string& name : kSymbols) bindings[name] = random.integer(0, 49);
  return bindings;
}

Sample random_sample(RandomSource& random, const Bindings& bindings, int depth) {
  const std::int64_t choice = random.integer(0, depth == 0 ? 1 : 7);
  if (choice == 0) {
    const std::int64_t number = random.integer(-9, 9);
    return {Dim(number), number};
  }
  if (choice == 1) {
    const std::string& name = kSymbols[static_cast<std::size_t>(random.integer(0, kSymbols.size() - 1))];
    return {Dim::symbol(name), bindings.at(name)};
  }
  const Sample a = random_sample(random, bindings, depth - 1);
  if (choice >= 5) {
    const std::int64_t k = random.integer(1, 8);
    const std::int64_t up = floor_divide(a.value + k - 1, k);
    if (choice == 5) return {align(a.dim, k), up * k};
    if (choice == 6) return {ceildiv(a.dim, k), up};
    return {floordiv(a.dim, k), floor_divide(a.value, k)};
  }
  const Sample b = random_sample(random, bindings, depth - 1);
  if (choice == 2) return {a.dim + b.dim, a.value + b.value};
  if (choice == 3) return {a.dim - b.dim, a.value - b.value};
  return {a.dim * b.dim, a.value * b.value};
}

// Runs `property(random)` on kCases fresh sources; an assertion in it names the case.
template <class Property>
void for_random_cases(Property&& property) {
  for (std::uint64_t seed = 0; seed < kCases && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("case " + std::to_string(seed));
    RandomSource random(seed);
    property(random);
  }
}

TEST(DimProperty, EvaluatesAsTheNumbersDo) {
  for_random_cases([](RandomSource& random) {
    const Bindings bindings = random_bindings(random);
    const Sample sample = random_sample(random, bindings, 4);
    EXPECT_EQ(sample.dim.evaluate(bindings), sample.value) << sample.dim.text();
  });
}

TEST(DimProperty, TextReadsBackTheSameDim) {
  for_random_cases([](RandomSource& random) {
    const Sample sample = random_sample(random, random_bindings(random), 4);
    const std::string text = sample.dim.text();
    const Dim parsed = parse_dim(text);
    EXPECT_EQ(parsed, sample.dim) << text;
    EXPECT_EQ(parsed.text(), text);
  });
}

TEST(DimProperty, KeepsTheLawsOfARing) {
  for_random_cases([](RandomSource& random) {
    const Bindings bindings = random_bindings(random);
    const Dim a = random_sample(random, bindings, 3).dim;
    const Dim b = random_sample(random, bindings, 3).dim;
    const Dim c = random_sample(random, bindings, 2).dim;
    EXPECT_EQ(a + b, b + a);
    EXPECT_EQ(a * b, b * a);
    EXPECT_EQ((a + b) + c, a + (b + c));
    EXPECT_EQ((a * b) * c, a * (b * c));
    EXPECT_EQ((a + b) * c, a * c + b * c);
    EXPECT_EQ(a - a, Dim(0));
    EXPECT_EQ(a - b, a + b * -1);
  });
}

TEST(DimProperty, RangeHoldsEveryValue) {
  for_random_cases([](RandomSource& random) {
    Bindings bindings;
    Bounds bounds;
    for (const std::string& name : kSymbols) {
      const std::int64_t lo = random.integer(-5, 19);
      bounds[name] = {lo, lo + random.integer(0, 19)};
      bindings[name] = random.integer(lo, bounds[name].hi);
    }
    const Sample sample = random_sample(random, bindings, 4);
    const Interval range = sample.dim.range(bounds);
    EXPECT_LE(range.lo, sample.value) << sample.dim.text();
    EXPECT_GE(range.hi, sample.value) << sample.dim.text();
  });
}

TEST(DimProperty, ComparisonsNeverContradictValues) {
  int decided = 0;
  for_random_cases([&](RandomSource& random) {
    const Bindings bindings = random_bindings(random);
    const Bounds bounds = {{"s0", {0, 49}}, {"s1", {0, 49}}, {"n", {0, 49}}};
    const Sample a = random_sample(random, bindings, 3);
    const Sample b = random_sample(random, bindings, 3);
    const Truth equal = compare_equal(a.dim, b.dim, bounds);
    const Truth less = compare_less_equal(a.dim, b.dim, bounds);
    if (equal != Truth::unknown) {
      EXPECT_EQ(equal == Truth::yes, a.value == b.value) << a.dim.text() << " and " << b.dim.text();
    }
    if (less != Truth::unknown) {
      EXPECT_EQ(less == Truth::yes, a.value <= b.value) << a.dim.text() << " and " << b.dim.text();
    }
    decided += less != Truth::unknown;
  });
  EXPECT_GT(decided, static_cast<int>(kCases) / 10);
}

TEST(DimProperty, SubstitutionCommutesWithEvaluation) {
  for_random_cases([](RandomSource& random) {
    const Bindings bindings = random_bindings(random);
    const Sample outer = random_sample(random, bindings, 3);
    const Sample inner = random_sample(random, bindings, 2);
    Bindings replaced = bindings;
    replaced["s0"] = inner.value;
    EXPECT_EQ(outer.dim.substitute({{"s0", inner.dim}}).evaluate(bindings), outer.dim.evaluate(replaced))
        << outer.dim.text() << " with " << inner.dim.text();
  });
}

TEST(DimProperty, OrderIsTotal) {
  for_random_cases([](RandomSource& random) {
    const Bindings bindings = random_bindings(random);
    std::array<Dim, 3> dims;
    for (Dim& dim : dims) dim = random_sample(random, bindings, 3).dim;
    EXPECT_EQ(Dim::compare(dims[0], dims[1]), -Dim::compare(dims[1], dims[0]));
    EXPECT_EQ(Dim::compare(dims[0], dims[1]) == 0, dims[0].text() == dims[1].text());
    std::sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return Dim::compare(a, b) < 0; });
    EXPECT_LE(Dim::compare(dims[0], dims[2]), 0);
  });
}

}  // namespace
}  // namespace weft
