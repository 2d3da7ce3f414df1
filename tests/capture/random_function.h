#pragma once

// Random functions: ops, branches and loops over sizes and numbers, reads of values, calls that donate their arguments,
// supplied tensors, parts that must not be compiled, and other row counts.
//
// A FunctionRecipe is a list of small numbers; RandomFunction interprets any such list as a function that can be called
// on any Values.

#include <array>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/value.h"

namespace weft {

// Each number counts modulo the choices there are.
struct StatementRecipe {
  int kind = 0;
  int first = 0;  // among the values there are
  int second = 0;
  int detail = 0;  // thresholds, factors
};

struct FunctionRecipe {
  std::vector<StatementRecipe> statements;
  int result = 0;  // which value is returned in addition to the last one
};

class RandomFunction {
 public:
  static constexpr std::int64_t kWidth = 8;
  // Counts of the effects of statements.
  enum class Feature : std::uint8_t {
    pointwise,
    norm,
    views,
    guard_on_size,
    guard_to_and_fro,
    loop_over_size,
    branch_on_number,
    loop_over_number,
    branch_on_value,
    number_of_value,
    printed,
    donated,
    brought,
    run_eagerly,
    other_rows,
    count
  };
  static std::string_view feature_text(Feature feature);
  using Features = std::array<int, static_cast<std::size_t>(Feature::count)>;

  RandomFunction(FunctionRecipe recipe, Tensor brought) : recipe_(std::move(recipe)), brought_(std::move(brought)) {}

  // x, y: f32[rows, kWidth]; other: f32[others, kWidth]; weight: f32[kWidth]. Gives two of the values it made of x and
  // y, and one made of `other`.
  Values operator()(Value x, Value y, Value other, Value weight, std::int64_t number) const;
  // The text that it and its copies printed since the last call of this; it shows whether a compiled function printed
  // more often.
  std::string take_printed() const { return std::exchange(*printed_, ""); }

  // Which statements the recipe has.
  Features features() const;
  // Its rows are to be marked; nothing it does then needs them to be a number.
  bool is_marked() const { return recipe_.result % 5 == 0; }
  // The same for those of `other`.
  bool is_other_marked() const { return recipe_.result % 10 == 0; }
  // It has no graph breaks, and donates a tensor that it supplies.
  bool is_refused() const;

 private:
  FunctionRecipe recipe_;
  Tensor brought_;
  std::shared_ptr<std::string> printed_ = std::make_shared<std::string>();
};

// For messages.
void showValue(const FunctionRecipe& recipe, std::ostream& out);

}  // namespace weft
