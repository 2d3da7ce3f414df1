// Checks proved comparisons of dims with Z3, on random linear conditions. Only tests use Z3.

#include <array>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#ifdef WEFT_Z3
#include <z3++.h>
#endif

#include "tensor/dim_condition.h"

namespace weft::dim_condition_z3_test {

#ifdef WEFT_Z3

constexpr std::size_t kSymbols = 3;

// constant + coefficient * symbol, summed; if `divisor` is not 0 also + factor * floordiv(inner, divisor).
struct Linear {
  std::array<int, kSymbols> coefficients = {};
  int constant = 0;
};
struct Side {
  Linear linear;
  int factor = 0, divisor = 0;
  Linear inner;
};

// Values of the symbols and the division, for Dims and for Z3.
template <class Number, class Floor>
Number value(const Side& side, const std::array<Number, kSymbols>& symbols, const Number& zero, const Floor& floor) {
  const auto sum = [&](const Linear& linear) {
    Number total = zero + linear.constant;
    for (std::size_t i = 0; i < kSymbols; ++i) total = total + symbols[i] * linear.coefficients[i];
    return total;
  };
  const Number total = sum(side.linear);
  return side.divisor == 0 ? total : Number(total + floor(sum(side.inner), side.divisor) * side.factor);
}

class Z3 : public ::testing::Test {
 protected:
  int number(int lo, int hi) { return lo + static_cast<int>(random_() % static_cast<unsigned>(hi - lo + 1)); }
  Linear linear() {
    Linear linear{.constant = number(-12, 12)};
    for (int& coefficient : linear.coefficients) coefficient = number(0, 1) == 0 ? 0 : number(-4, 4);
    return linear;
  }
  Side side(bool divides) {
    Side side{.linear = linear()};
    if (divides) side.factor = number(-3, 3), side.divisor = number(2, 8), side.inner = linear();
    return side;
  }

  struct Case {
    DimCondition condition;
    Bounds bounds;
    Truth z3 = Truth::unknown;  // yes and no are proofs; unknown has an example of either
  };
  Case next(bool divides) {
    const Side left = side(divides), right = side(false);
    const auto relation = static_cast<DimCondition::Relation>(number(0, 3));
    std::array<Dim, kSymbols> dims = {};
    std::array<z3::expr, kSymbols> integers = {context_.int_const("a"), context_.int_const("b"),
                                               context_.int_const("c")};
    Case drawn;
    z3::expr inside = context_.bool_val(true);
    for (std::size_t i = 0; i < kSymbols; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      const int lo = number(0, 20), hi = lo + number(0, 20);
      dims[i] = Dim::symbol(name);
      drawn.bounds[name] = {lo, hi};
      inside = inside && integers[i] >= lo && integers[i] <= hi;
    }
    const auto floor = [](const auto& inner, int divisor) {
      if constexpr (std::same_as<std::decay_t<decltype(inner)>, Dim>)
        return floordiv(inner, divisor);
      else
        return z3::expr(inner / divisor);  // SMT-LIB's: rounds down for a positive divisor
    };
    drawn.condition = {value(left, dims, Dim(0), floor), relation, value(right, dims, Dim(0), floor)};
    const z3::expr zero = context_.int_val(0);
    const z3::expr a = value(left, integers, zero, floor), b = value(right, integers, zero, floor);
    const z3::expr holds = relation == DimCondition::Relation::equal       ? a == b
                           : relation == DimCondition::Relation::not_equal ? a != b
                           : relation == DimCondition::Relation::less      ? a < b
                                                                           : a <= b;
    if (!possible(inside && !holds)) drawn.z3 = Truth::yes;
    if (!possible(inside && holds)) drawn.z3 = Truth::no;
    return drawn;
  }
  bool possible(const z3::expr& formula) {
    solver_.push();
    solver_.add(formula);
    const z3::check_result result = solver_.check();
    solver_.pop();
    EXPECT_NE(result, z3::unknown) << formula;
    return result == z3::sat;
  }

  z3::context context_;
  z3::solver solver_{context_, z3::solver::simple()};  // one for all: creating one takes longer than a query
  std::mt19937 random_{5};
};

const char* text(Truth truth) { return truth == Truth::yes ? "yes" : truth == Truth::no ? "no" : "unknown"; }

// Over a box of sizes the ends of an interval are reached, so a comparison of linear expressions has no doubt left.
TEST_F(Z3, AgreesOnWhichIsLessForLinearExpressions) {
  int compared = 0, shown = 0;
  for (int i = 0; i < 400; ++i) {
    const Case drawn = next(false);
    if (drawn.condition.relation < DimCondition::Relation::less) continue;
    const Truth truth = drawn.condition.truth(drawn.bounds);
    EXPECT_STREQ(text(truth), text(drawn.z3)) << drawn.condition.text();
    ++compared;
    shown += truth == Truth::unknown ? 0 : 1;
  }
  EXPECT_GT(compared, 150);
  EXPECT_GT(shown, 100);
  std::cout << "count: linear comparisons held against Z3: " << compared << ", decided: " << shown << "\n";
}

TEST_F(Z3, NeverContradictsWhatIsShown) {
  int shown = 0, missed = 0;
  for (int i = 0; i < 400; ++i) {
    const Case drawn = next(i % 2 == 0);
    const Truth truth = drawn.condition.truth(drawn.bounds);
    if (truth == Truth::unknown) {
      missed += drawn.z3 == Truth::unknown ? 0 : 1;
      continue;
    }
    EXPECT_STREQ(text(truth), text(drawn.z3)) << drawn.condition.text();
    ++shown;
  }
  EXPECT_GT(shown, 150);
  std::cout << "count: conditions on sizes shown as Z3 shows them: " << shown << ", shown by Z3 alone: " << missed
            << "\n";
}

#else

TEST(Z3, AgreesOnWhichIsLessForLinearExpressions) { GTEST_SKIP() << "Z3 (Debian's libz3-dev) was not found"; }

#endif

}  // namespace weft::dim_condition_z3_test
