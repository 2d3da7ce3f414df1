#pragma once

// The row-wise ops for one instruction set (WEFT_FLOAT_VECTORS: see float_vector_operations.h). Each computes the bits
// of its op's meaning: f32 arithmetic, rounded to the element type T wherever the meaning has a value of that type.

#include <cstdint>

#include "kernels/cpu/lib/reference_vector.h"
#include "kernels/cpu/lib/row_wise_kernels.h"

namespace weft::cpu {
namespace {

template <class T>
inline const T* row_of(const void* data, std::int64_t row, std::int64_t stride) {
  return static_cast<const T*>(data) + row * stride;
}
template <class T>
inline T* row_of(void* data, std::int64_t row, std::int64_t stride) {
  return static_cast<T*>(data) + row * stride;
}

struct NoWeight {};

// value * scale, times the weight. The product is first rounded to the weight's type, because the meaning casts before
// it multiplies.
template <class Weight, class Lanes>
inline Floats scaled(Floats value, float scale, const void* weight, std::int64_t column, Lanes lanes) {
  const Floats y = value * scale;
  if constexpr (__is_same(Weight, NoWeight)) {
    return y;
  } else {
    const Floats factor = load(static_cast<const Weight*>(weight) + column, lanes);
    return rounded_result<Weight>(rounded_result<Weight>(y) * factor);
  }
}

// Whether all operands of `scaled` have type T, except for constants.
template <class T, class Weight>
constexpr bool kOfOneType = !__is_same(Weight, float) || __is_same(T, float);

// Stores a result of `scaled` as T; rounded_scaled returns it as it reads after that.
template <class T, class Weight, class Lanes>
inline void store_scaled(T* to, Floats x, Lanes lanes) {
  if constexpr (kOfOneType<T, Weight>) {
    store_result(to, x, lanes);
  } else {
    store(to, x, lanes);
  }
}
template <class T, class Weight>
inline Floats rounded_scaled(Floats x) {
  if constexpr (__is_same(Weight, T)) {
    return x;  // already rounded
  } else if constexpr (kOfOneType<T, Weight>) {
    return rounded_result<T>(x);
  } else {
    return rounded_to<T>(x);
  }
}

inline float norm_scale(float square_sum, const NormTask& task) {
  return reference_rsqrt(square_sum / static_cast<float>(task.variance_columns) + task.epsilon);
}

// Calls take(row, value) for each row. value(column, lanes) is the result of rms_norm there, not yet rounded to T.
template <class T, class Weight, class Take>
inline void normalized_rows(const NormTask& task, Take take) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const T* x = row_of<T>(task.x, row, task.x_stride);
    const float squares = vector_row_sum(task.variance_columns, [&](std::int64_t column, auto lanes) {
      const Floats f = load(x + column, lanes);
      return f * f;
    });
    const float scale = norm_scale(squares, task);
    take(row, [&](std::int64_t column, auto lanes) {
      return scaled<Weight>(load(x + column, lanes), scale, task.weight, column, lanes);
    });
  }
}

template <class T, class Weight>
void rms_norm(const NormTask& task) {
  normalized_rows<T, Weight>(
      task, [&](std::int64_t row, auto value) __attribute__((always_inline)) {
        T* output = row_of<T>(task.output, row, task.output_stride);
        for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
          store_scaled<T, Weight>(output + column, value(column, lanes), lanes);
        });
      });
}

// The same for fused_add_rms_norm. value(column, lanes) also stores the sum, perhaps over x_residual: it may be called
// once for each column.
template <class T, class Weight, bool rounded, class Take>
inline void normalized_sums(const NormTask& task, Take take) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const T* x = row_of<T>(task.x, row, task.x_stride);
    const T* residual = row_of<T>(task.residual, row, task.residual_stride);
    T* residual_output = row_of<T>(task.residual_output, row, task.residual_output_stride);
    const auto sum = [&](std::int64_t column, auto lanes) {
      const Floats exact = load(x + column, lanes) + load(residual + column, lanes);
      return rounded ? rounded_result<T>(exact) : exact;
    };
    const float squares = vector_row_sum(task.variance_columns, [&](std::int64_t column, auto lanes) {
      const Floats f = sum(column, lanes);
      return f * f;
    });
    const float scale = norm_scale(squares, task);
    // The sum is computed again, because an unrounded sum is stored nowhere.
    take(row, [&](std::int64_t column, auto lanes) {
      const Floats f = sum(column, lanes);
      store_result(residual_output + column, f, lanes);
      return scaled<Weight>(f, scale, task.weight, column, lanes);
    });
  }
}

template <class T, class Weight, bool rounded>
void fused_add_rms_norm_of(const NormTask& task) {
  normalized_sums<T, Weight, rounded>(
      task, [&](std::int64_t row, auto value) __attribute__((always_inline)) {
        T* output = row_of<T>(task.output, row, task.output_stride);
        for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
          store_scaled<T, Weight>(output + column, value(column, lanes), lanes);
        });
      });
}

template <class T, class Weight>
void fused_add_rms_norm(const NormTask& task) {
  task.normalize_rounded ? fused_add_rms_norm_of<T, Weight, true>(task) : fused_add_rms_norm_of<T, Weight, false>(task);
}

// An activation in two steps: the factor of x that takes long to compute, and the activation from both, to be rounded
// to R.
template <Gate gate, class R, class T, class Lanes>
inline Floats activation_factor(const T* from, Lanes lanes) {
  if constexpr (gate == Gate::silu && __is_same(R, Brain) && kFusesMultiplyAdd) {
    return bfloat_silu_divisor(load_silu_operand(from, lanes));
  } else if constexpr (gate == Gate::silu) {
    return vector_silu_divisor(load(from, lanes));
  } else if constexpr (gate == Gate::gelu) {
    return vector_erf(load(from, lanes) * 0.707106781186547524f) + 1.0f;
  } else {
    const Floats x = load(from, lanes);
    const Floats inner = once_rounded_sum(x * x * x, 0.044715f, x) * 0.797884560802865356f;
    return vector_tanh(inner) + 1.0f;
  }
}
template <Gate gate>
inline Floats activation(Floats x, Floats factor) {
  return gate == Gate::silu ? x / factor : (x * 0.5f) * factor;
}

// Calls take(row, first, count, value) for blocks of `width` columns, at most kBlockColumns. value(column, lanes) is
// the product at first + column; the activation is rounded to R, the product not yet. Factors are kept in L1, because
// more iterations of two loops with short dependency chains overlap than of one loop with long chains. If `paired`, all
// columns are in the order of for_each_vector_or_pair.
template <Gate gate, class T, class R, bool paired, class Take>
inline void gated_blocks(const RowTask& task, std::int64_t width, Take take) {
  float factors[kBlockColumns];
  for (std::int64_t row = 0; row < task.rows; ++row) {
    for (std::int64_t first = 0; first < task.columns; first += width) {
      const T* x = row_of<T>(task.x, row, task.x_stride) + first;
      const T* y = x + task.columns;
      const std::int64_t count = task.columns - first < width ? task.columns - first : width;
      for_each_vector_or_pair<paired>(count, [&](std::int64_t column, auto lanes) {
        if constexpr (!__is_same(decltype(lanes), OddLanes)) __builtin_prefetch(y + column);
        store(factors + column, activation_factor<gate, R>(x + column, lanes), lanes);
      });
      take(row, first, count, [&](std::int64_t column, auto lanes) {
        const Floats active = activation<gate>(load(x + column, lanes), load(factors + column, lanes));
        return rounded_result<R>(active) * load(y + column, lanes);
      });
    }
  }
}

template <Gate gate, class T>
void gated(const RowTask& task) {
  gated_blocks<gate, T, T, false>(
      task, kBlockColumns,
      [&](std::int64_t row, std::int64_t first, std::int64_t count, auto value) __attribute__((always_inline)) {
        T* output = row_of<T>(task.output, row, task.output_stride) + first;
        for_each_vector(count, [&](std::int64_t column, auto lanes) {
          store_result(output + column, value(column, lanes), lanes);
        });
      });
}

template <class T, class Operation>
inline void binary(const RowTask& task, Operation operation) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const T* x = row_of<T>(task.x, row, task.x_stride);
    const T* y = row_of<T>(task.y, row, task.y_stride);
    T* output = row_of<T>(task.output, row, task.output_stride);
    for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
      store(output + column, operation(load(x + column, lanes), load(y + column, lanes)), lanes);
    });
  }
}
template <class T>
void add(const RowTask& task) {
  binary<T>(task, [](Floats x, Floats y) { return x + y; });
}
template <class T>
void mul(const RowTask& task) {
  binary<T>(task, [](Floats x, Floats y) { return x * y; });
}

template <class From, class To>
void cast(const RowTask& task) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const From* x = row_of<From>(task.x, row, task.x_stride);
    To* output = row_of<To>(task.output, row, task.output_stride);
    for_each_vector(task.columns,
                    [&](std::int64_t column, auto lanes) { store(output + column, load(x + column, lanes), lanes); });
  }
}

// The largest element that is a number; -infinity if there is none.
template <class T>
inline float largest_number(const T* x, std::int64_t columns) {
  Floats largest = fill(-__builtin_inff());
  std::int64_t column = 0;
  for (; column + kLanes <= columns; column += kLanes) largest = larger(load(x + column), largest);
  float lanes[kLanes], rest[kLanes];
  store(lanes, largest);
  const int count = static_cast<int>(columns - column);
  if (count > 0) store(rest, load(x + column, FirstLanes{count}));
  float result = lanes[0];
  for (int i = 1; i < kLanes; ++i) result = lanes[i] > result ? lanes[i] : result;
  for (int i = 0; i < count; ++i) result = rest[i] > result ? rest[i] : result;
  return result;
}

// Sets the lanes after the end of the row to 0.
inline Floats inside(Floats x, AllLanes) { return x; }
inline Floats inside(Floats x, FirstLanes lanes) {
  float buffer[kLanes];
  store(buffer, x);
  return load(buffer, lanes);
}

// The maximum of the meaning may be NaN where this one is not. Then the sum is NaN, so the row is the same.
template <class T>
void softmax(const RowTask& task) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const T* x = row_of<T>(task.x, row, task.x_stride);
    T* output = row_of<T>(task.output, row, task.output_stride);
    const float largest = largest_number(x, task.columns);
    const auto power = [&](std::int64_t column, auto lanes) { return vector_exp(load(x + column, lanes) - largest); };
    // The powers are kept in the output if it does not round them; otherwise they are computed again.
    constexpr bool kept = __is_same(T, float);
    const float sum = vector_row_sum(task.columns, [&](std::int64_t column, auto lanes) {
      const Floats p = power(column, lanes);
      if constexpr (kept) store(output + column, p, lanes);
      return inside(p, lanes);
    });
    for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
      if constexpr (kept) {
        store(output + column, load(output + column, lanes) / sum, lanes);
      } else {
        store(output + column, power(column, lanes) / sum, lanes);
      }
    });
  }
}

inline Floats swap_pairs(Floats x) { return __builtin_shuffle(x, lane_numbers() ^ 1); }

// A token's cosines and sines, rounded to T.
template <class T, class Cache>
inline void load_angles(const Cache* row, std::int64_t rotary_dim, float* cosines, float* sines) {
  for_each_vector(rotary_dim / 2, [&](std::int64_t i, auto lanes) {
    store(cosines + i, rounded_to<T>(load(row + i, lanes)), lanes);
    store(sines + i, rounded_to<T>(load(row + rotary_dim / 2 + i, lanes)), lanes);
  });
}
template <class T>
inline void load_angles(const RotaryTask& task, std::int64_t position, float* cosines, float* sines) {
  const std::int64_t at = position * task.cache_stride;
  const void* cache = task.cos_sin_cache;
  if (task.cache_element == Element::f32) {
    load_angles<T>(static_cast<const float*>(cache) + at, task.rotary_dim, cosines, sines);
  } else if (task.cache_element == Element::f16) {
    load_angles<T>(static_cast<const Half*>(cache) + at, task.rotary_dim, cosines, sines);
  } else {
    load_angles<T>(static_cast<const Brain*>(cache) + at, task.rotary_dim, cosines, sines);
  }
}

// Repeats each angle for the two members of an adjacent pair. The sine of the first member is negated.
inline void spread_angles(std::int64_t pairs, float* cosines, float* sines) {
  for (std::int64_t i = pairs - 1; i >= 0; --i) {
    cosines[2 * i] = cosines[2 * i + 1] = cosines[i];
    const float sine = sines[i];
    sines[2 * i] = -sine;
    sines[2 * i + 1] = sine;
  }
}

template <class T>
inline void rotate_halves(const T* x, T* output, std::int64_t half, const float* cosines, const float* sines) {
  for_each_vector(half, [&](std::int64_t i, auto lanes) {
    const Floats a = load(x + i, lanes);
    const Floats b = load(x + half + i, lanes);
    const Floats c = load(cosines + i, lanes);
    const Floats s = load(sines + i, lanes);
    store(output + i, rounded_to<T>(a * c) - rounded_to<T>(b * s), lanes);
    store(output + half + i, rounded_to<T>(b * c) + rounded_to<T>(a * s), lanes);
  });
}
template <class T>
inline void rotate_pairs(const T* x, T* output, std::int64_t dim, const float* cosines, const float* sines) {
  for_each_vector(dim, [&](std::int64_t i, auto lanes) {
    const Floats a = load(x + i, lanes);
    const Floats c = load(cosines + i, lanes);
    const Floats s = load(sines + i, lanes);
    store(output + i, rounded_to<T>(a * c) + rounded_to<T>(swap_pairs(a) * s), lanes);
  });
}

template <class T>
inline void rotate_row(const RotaryTask& task, const RotatedHeads& heads, std::int64_t row, const float* cosines,
                       const float* sines) {
  for (std::int64_t head = 0; head < heads.heads; ++head) {
    const T* x = row_of<T>(heads.x, row, heads.x_stride) + head * task.head_size;
    T* output = row_of<T>(heads.output, row, heads.output_stride) + head * task.head_size;
    if (task.neox) {
      rotate_halves(x, output, task.rotary_dim / 2, cosines, sines);
    } else {
      rotate_pairs(x, output, task.rotary_dim, cosines, sines);
    }
    if (output == x) continue;
    const std::int64_t rest = task.head_size - task.rotary_dim;
    __builtin_memmove(output + task.rotary_dim, x + task.rotary_dim, sizeof(T) * static_cast<std::uint64_t>(rest));
  }
}

template <class T>
void rotary(const RotaryTask& task) {
  float cosines[kMaxRotaryDim];
  float sines[kMaxRotaryDim];
  for (std::int64_t row = 0; row < task.rows; ++row) {
    load_angles<T>(task, task.positions[row], cosines, sines);
    if (!task.neox) spread_angles(task.rotary_dim / 2, cosines, sines);
    rotate_row<T>(task, task.query, row, cosines, sines);
    rotate_row<T>(task, task.key, row, cosines, sines);
  }
}

constexpr RowWiseKernels make_row_wise_kernels() {
  return {
      .rms_norm = {{rms_norm<float, NoWeight>, rms_norm<float, float>, rms_norm<float, float>},
                   {rms_norm<Half, NoWeight>, rms_norm<Half, float>, rms_norm<Half, Half>},
                   {rms_norm<Brain, NoWeight>, rms_norm<Brain, float>, rms_norm<Brain, Brain>}},
      .fused_add_rms_norm =
          {{fused_add_rms_norm<float, NoWeight>, fused_add_rms_norm<float, float>, fused_add_rms_norm<float, float>},
           {fused_add_rms_norm<Half, NoWeight>, fused_add_rms_norm<Half, float>, fused_add_rms_norm<Half, Half>},
           {fused_add_rms_norm<Brain, NoWeight>, fused_add_rms_norm<Brain, float>, fused_add_rms_norm<Brain, Brain>}},
      .gated = {{gated<Gate::silu, float>, gated<Gate::silu, Half>, gated<Gate::silu, Brain>},
                {gated<Gate::gelu, float>, gated<Gate::gelu, Half>, gated<Gate::gelu, Brain>},
                {gated<Gate::gelu_tanh, float>, gated<Gate::gelu_tanh, Half>, gated<Gate::gelu_tanh, Brain>}},
      .add = {add<float>, add<Half>, add<Brain>},
      .mul = {mul<float>, mul<Half>, mul<Brain>},
      .cast = {{cast<float, float>, cast<float, Half>, cast<float, Brain>},
               {cast<Half, float>, cast<Half, Half>, cast<Half, Brain>},
               {cast<Brain, float>, cast<Brain, Half>, cast<Brain, Brain>}},
      .softmax = {softmax<float>, softmax<Half>, softmax<Brain>},
      .rotary = {rotary<float>, rotary<Half>, rotary<Brain>},
  };
}

}  // namespace
}  // namespace weft::cpu
