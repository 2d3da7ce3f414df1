#include "tests/capture/random_function.h"

#include <algorithm>
#include <ostream>

#include "capture/run_eagerly.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/amax.h"
#include "ops/concat.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/sigmoid.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "ops/sum.h"

namespace weft {
namespace {

using Feature = RandomFunction::Feature;

Feature feature_of(const StatementRecipe& statement) {
  return static_cast<Feature>(statement.kind % static_cast<int>(Feature::count));
}

// Its size is 1 for any number of rows.
Value one_number(const Value& x) { return sum(sum(x, 0), 1); }

bool is_same_value(const Value& a, const Value& b) {
  if (a.graph_value() != nullptr || b.graph_value() != nullptr) return a.graph_value() == b.graph_value();
  return a.tensor().storage == b.tensor().storage;
}

// Whether the donated value is a tensor that the function supplies.
bool gives_what_it_brought(const StatementRecipe& s) {
  return feature_of(s) == Feature::donated && s.detail / 2 % 3 == 0;
}

// The effects of statements on other rows.
enum class OtherRows : std::uint8_t { pointwise, branch_on_size, mix, branch_on_value, count };
OtherRows other_rows_of(const StatementRecipe& statement) {
  return static_cast<OtherRows>(statement.detail % static_cast<int>(OtherRows::count));
}

bool asks(const StatementRecipe& statement) {
  switch (feature_of(statement)) {
    case Feature::branch_on_value:
    case Feature::number_of_value:
    case Feature::printed:
    case Feature::run_eagerly:
      return true;
    case Feature::other_rows:
      return other_rows_of(statement) == OtherRows::branch_on_value;
    default:
      return false;
  }
}

// One run of a function.
class Body {
 public:
  Body(Value x, Value y, Value other, Value weight, std::int64_t number, const Tensor& brought, bool is_marked,
       std::string& printed)
      : x_(x),
        other_(std::move(other)),
        weight_(std::move(weight)),
        number_(number),
        brought_(brought),
        is_marked_(is_marked),
        printed_(printed),
        values_{std::move(x), std::move(y)} {}

  void run(const StatementRecipe& s) { values_.push_back(result_of(s)); }
  Value at(int index) const { return values_[static_cast<std::size_t>(index) % values_.size()]; }
  Values values() const { return values_; }
  Value other() const { return other_; }

 private:
  Value pointwise(const StatementRecipe& s) const {
    const Value a = at(s.first), b = at(s.second);
    switch (s.detail % 5) {
      case 0:
        return add(a, b);
      case 1:
        return mul(a, b);
      case 2:
        return silu(a);
      case 3:
        return sigmoid(a);
      default:
        return mul_scalar(a, 0.25 * (s.detail % 7));
    }
  }

  Value views(const StatementRecipe& s) const {
    const Value a = at(s.first);
    constexpr std::int64_t half = RandomFunction::kWidth / 2;
    if (s.detail % 2 == 0) return concat({slice(a, 1, half, 2 * half), slice(at(s.second), 1, 0, half)}, 1);
    // Twice the rows cannot be a symbol, so another try follows if the rows were one.
    if (s.detail % 5 == 1 && !is_marked_) {
      const Value doubled = silu(reshape(a, {a.dim(0) * Dim(2), half}));
      return reshape(doubled, {a.dim(0), 2 * half});
    }
    const Value split = silu(reshape(a, {a.dim(0), 2, half}));
    return reshape(split, {a.dim(0), 2 * half});
  }

  Value by_size(const StatementRecipe& s, const DimCondition& condition) const {
    return guard(x_, condition) ? silu(at(s.first)) : mul_scalar(at(s.first), 0.5);
  }

  // Returns the value, which is not used after this: an argument, or a value from before or after a break.
  Value taken(int index) {
    const Value value = at(index);
    std::erase_if(values_, [&](const Value& other) { return is_same_value(other, value); });
    return value;
  }

  Value donated(const StatementRecipe& s) {
    if (gives_what_it_brought(s)) {
      const auto bring = [&] {
        Tensor copy = Tensor::empty(Meta::tensor(brought_.meta.dtype, {1, RandomFunction::kWidth}));
        std::copy_n(brought_.as<float>(), RandomFunction::kWidth, copy.as<float>());
        return x_.home().value(std::move(copy));
      };
      const Value a = bring(), b = bring();
      const Value normed = fused_add_rms_norm(maybe_inplace, a, b, weight_, 1e-5).first;
      return add(at(s.first), reshape(normed, {RandomFunction::kWidth}));
    }
    const bool takes = s.detail / 2 % 3 == 1;
    const Value made = mul(at(s.second), at(s.second));
    const Value a = takes ? taken(s.first) : mul_scalar(at(s.first), 1.5);
    const Value b = takes && s.detail % 5 > 2 && !values_.empty() ? taken(s.second) : made;
    const auto [normed, total] = fused_add_rms_norm(maybe_inplace, a, b, weight_, 1e-5);
    return s.detail % 2 == 0 ? normed : add(normed, total);
  }

  Value other_rows(const StatementRecipe& s) {
    const Value a = at(s.first);
    switch (other_rows_of(s)) {
      case OtherRows::branch_on_size:
        other_ = guard(other_, other_.dim(0) > s.detail % 6) ? mul(other_, other_) : sigmoid(other_);
        return a;
      case OtherRows::mix:
        return add(a, reshape(sum(other_, 0), {RandomFunction::kWidth}));
      case OtherRows::branch_on_value:
        return mul_scalar(a, item(one_number(other_)) > s.detail % 3 ? 1.25 : 0.75);
      default:
        other_ = silu(other_);
        return a;
    }
  }

  Value result_of(const StatementRecipe& s) {
    const Value a = at(s.first);
    const Dim rows = x_.dim(0);
    switch (feature_of(s)) {
      case Feature::pointwise:
        return pointwise(s);
      case Feature::norm:
        return rms_norm(a, weight_, 1e-5);
      case Feature::views:
        return views(s);
      case Feature::guard_on_size:
        return by_size(s, s.detail % 2 == 0 ? rows > s.detail % 9 : equal(rows, s.detail % 9));
      case Feature::guard_to_and_fro:
        return by_size(s, equal(align(rows, 2 + s.detail % 3), rows));
      case Feature::loop_over_size: {
        Value looped = a;
        for (int i = 0; guard(x_, Dim(4 * i) < rows); ++i) looped = mul_scalar(looped, 0.75);
        return looped;
      }
      case Feature::branch_on_number:
        return number_ > s.detail % 3 ? silu(a) : mul_scalar(a, 2.0);
      case Feature::loop_over_number: {
        Value looped = a;
        for (std::int64_t i = 0; i < number_; ++i) looped = sigmoid(looped);
        return looped;
      }
      case Feature::branch_on_value:
        return is_true(one_number(a)) && item(one_number(a)) > 0 ? mul_scalar(a, 0.5) : silu(a);
      case Feature::number_of_value:
        return mul_scalar(at(s.second), item(one_number(a)) > s.detail % 3 ? 1.25 : 0.75);
      case Feature::printed:
        printed_ += to_text(sum(a, 1));
        return a;
      case Feature::donated:
        return donated(s);
      case Feature::brought:
        return add(a, a.home().value(brought_));
      case Feature::run_eagerly:
        return run_eagerly({a, at(s.second)}, [](const Values& v) { return Values{add(silu(v[0]), v[1])}; })[0];
      case Feature::other_rows:
        return other_rows(s);
      case Feature::count:
        break;
    }
    return a;
  }

  Value x_, other_, weight_;
  std::int64_t number_;
  const Tensor& brought_;
  bool is_marked_;
  std::string& printed_;
  Values values_;
};

}  // namespace

std::string_view RandomFunction::feature_text(Feature feature) {
  constexpr std::string_view kText[] = {"pointwise",
                                        "norm",
                                        "views",
                                        "guard on size",
                                        "guard to and fro",
                                        "loop over size",
                                        "branch on number",
                                        "loop over number",
                                        "branch on value",
                                        "number of value",
                                        "printed",
                                        "donated",
                                        "brought",
                                        "run eagerly",
                                        "other rows"};
  return kText[static_cast<std::size_t>(feature)];
}

Values RandomFunction::operator()(Value x, Value y, Value other, Value weight, std::int64_t number) const {
  Body body(std::move(x), std::move(y), std::move(other), std::move(weight), number, brought_, is_marked(), *printed_);
  for (const StatementRecipe& statement : recipe_.statements) body.run(statement);
  return {body.values().back(), body.at(recipe_.result), body.other()};
}

RandomFunction::Features RandomFunction::features() const {
  Features features{};
  for (const StatementRecipe& statement : recipe_.statements)
    ++features[static_cast<std::size_t>(feature_of(statement))];
  return features;
}

bool RandomFunction::is_refused() const {
  const auto& all = recipe_.statements;
  return std::none_of(all.begin(), all.end(), asks) && std::any_of(all.begin(), all.end(), gives_what_it_brought);
}

void showValue(const FunctionRecipe& recipe, std::ostream& out) {
  out << "result " << recipe.result << ";";
  for (const StatementRecipe& s : recipe.statements)
    out << " " << RandomFunction::feature_text(feature_of(s)) << "(" << s.first << ", " << s.second << ", " << s.detail
        << ");";
}

}  // namespace weft
