// Unary, binary and scalar primitives, element by element in f32 (f64 for f64).

#include <cmath>

#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/reference_math.h"

namespace weft {
namespace {

double value_at(const TensorView& view, const std::int64_t* index, int rank) {
  const std::int64_t element = element_at(view, index, rank);
  return view.dtype == DType::f64 ? load_double(view.dtype, view.data, element)
                                  : load_float(view.dtype, view.data, element);
}

// f32 arithmetic where the dtype is not f64: `function` gets float or double arguments.
template <class Function>
void run_unary(const KernelCall& call, Function function) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    const double value = value_at(x, index, y.rank);
    const std::int64_t at = element_at(y, index, y.rank);
    if (x.dtype == DType::f64) {
      store_double(y.dtype, y.data, at, function(value));
    } else {
      store_float(y.dtype, y.data, at, function(static_cast<float>(value)));
    }
  });
}

template <class Function>
void run_binary(const KernelCall& call, Function function) {
  const TensorView& a = call.operands[0];
  const TensorView& b = call.operands[1];
  const TensorView& y = call.results[0];
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    const double x = value_at(a, index, y.rank), z = value_at(b, index, y.rank);
    const std::int64_t at = element_at(y, index, y.rank);
    if (a.dtype == DType::f64) {
      store_double(y.dtype, y.data, at, function(x, z));
    } else {
      store_float(y.dtype, y.data, at, function(static_cast<float>(x), static_cast<float>(z)));
    }
  });
}

struct Exp {
  float operator()(float x) const { return reference_exp(x); }
  double operator()(double x) const { return std::exp(x); }
};
struct Tanh {
  float operator()(float x) const { return reference_tanh(x); }
  double operator()(double x) const { return std::tanh(x); }
};
struct Erf {
  float operator()(float x) const { return reference_erf(x); }
  double operator()(double x) const { return std::erf(x); }
};
struct Log1p {
  float operator()(float x) const { return static_cast<float>(std::log1p(static_cast<double>(x))); }
  double operator()(double x) const { return std::log1p(x); }
};
struct Sigmoid {
  float operator()(float x) const { return reference_sigmoid(x); }
  double operator()(double x) const { return 1 / (1 + std::exp(-x)); }
};

// If an operand is NaN, the result is NaN.
struct Maximum {
  auto operator()(auto x, auto y) const { return std::isnan(x) || x > y ? x : y; }
};
struct Minimum {
  auto operator()(auto x, auto y) const { return std::isnan(x) || x < y ? x : y; }
};

// Rounds x to a power of two, away from zero or towards it.
struct PowerOfTwo {
  bool up;
  auto operator()(auto x) const {
    if (x == 0 || !std::isfinite(x)) return x;
    int exponent = 0;
    const auto half = std::abs(std::frexp(x, &exponent));  // in [0.5, 1)
    using T = decltype(x);
    return std::copysign(std::ldexp(T(1), up && half != T(0.5) ? exponent : exponent - 1), x);
  }
};

void clamp(const KernelCall& call) {
  const Attribute& min = call.attributes.at("min");
  const Attribute& max = call.attributes.at("max");
  run_unary(call, [&](auto x) {
    using T = decltype(x);
    if (!min.is_none() && x < static_cast<T>(min.real())) x = static_cast<T>(min.real());
    if (!max.is_none() && x > static_cast<T>(max.real())) x = static_cast<T>(max.real());
    return x;
  });
}

void where_at_most(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  const double wanted = call.attributes.at("bound").real();
  const double bound = x.dtype == DType::f64 ? wanted : static_cast<double>(static_cast<float>(wanted));
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    const TensorView& from = call.operands[value_at(x, index, y.rank) <= bound ? 1 : 2];
    const double value = value_at(from, index, y.rank);
    const std::int64_t at = element_at(y, index, y.rank);
    if (y.dtype == DType::f64) {
      store_double(y.dtype, y.data, at, value);
    } else {
      store_float(y.dtype, y.data, at, static_cast<float>(value));
    }
  });
}

void reciprocal(const KernelCall& call) {
  const Attribute& of_zero = call.attributes.at("of_zero");
  run_unary(call,
            [&](auto x) { return x == 0 && !of_zero.is_none() ? static_cast<decltype(x)>(of_zero.real()) : 1 / x; });
}

template <class Function>
void run_scalar(const KernelCall& call, Function function) {
  const double value = call.attributes.at("value").real();
  run_unary(call, [&](auto x) { return function(x, static_cast<decltype(x)>(value)); });
}

}  // namespace
}  // namespace weft

KERNELS(reference, elementwise) {
  const auto add = [&](const char* op, void (*run)(const KernelCall&)) {
    registry.add({.op = op, .provider = "reference", .run = run});
  };
  add("add", [](const KernelCall& c) { run_binary(c, [](auto x, auto y) { return x + y; }); });
  add("sub", [](const KernelCall& c) { run_binary(c, [](auto x, auto y) { return x - y; }); });
  add("mul", [](const KernelCall& c) { run_binary(c, [](auto x, auto y) { return x * y; }); });
  add("div", [](const KernelCall& c) { run_binary(c, [](auto x, auto y) { return x / y; }); });
  add("maximum", [](const KernelCall& c) { run_binary(c, Maximum()); });
  add("minimum", [](const KernelCall& c) { run_binary(c, Minimum()); });
  add("add_scalar", [](const KernelCall& c) { run_scalar(c, [](auto x, auto y) { return x + y; }); });
  add("mul_scalar", [](const KernelCall& c) { run_scalar(c, [](auto x, auto y) { return x * y; }); });
  add("div_scalar", [](const KernelCall& c) { run_scalar(c, [](auto x, auto y) { return x / y; }); });
  add("clamp", clamp);
  add("where_at_most", where_at_most);
  add("replace_nan", [](const KernelCall& c) { run_scalar(c, [](auto x, auto y) { return std::isnan(x) ? y : x; }); });
  add("round_to_power_of_two",
      [](const KernelCall& c) { run_unary(c, PowerOfTwo{c.attributes.at("rounding").word() == "up"}); });
  add("reciprocal", reciprocal);
  add("neg", [](const KernelCall& c) { run_unary(c, [](auto x) { return -x; }); });
  add("abs", [](const KernelCall& c) { run_unary(c, [](auto x) { return std::abs(x); }); });
  add("exp", [](const KernelCall& c) { run_unary(c, Exp()); });
  add("tanh", [](const KernelCall& c) { run_unary(c, Tanh()); });
  add("erf", [](const KernelCall& c) { run_unary(c, Erf()); });
  add("log1p", [](const KernelCall& c) { run_unary(c, Log1p()); });
  add("sigmoid", [](const KernelCall& c) { run_unary(c, Sigmoid()); });
  add("sqrt", [](const KernelCall& c) { run_unary(c, [](auto x) { return std::sqrt(x); }); });
  add("rsqrt", [](const KernelCall& c) { run_unary(c, [](auto x) { return 1 / std::sqrt(x); }); });
  add("round", [](const KernelCall& c) { run_unary(c, [](auto x) { return std::nearbyint(x); }); });
  add("trunc", [](const KernelCall& c) { run_unary(c, [](auto x) { return std::trunc(x); }); });
}
