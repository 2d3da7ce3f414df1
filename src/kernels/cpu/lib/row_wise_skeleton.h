#pragma once

// The row-wise ops for one instruction set (WEFT_FLOAT_VECTORS: see float_vector_operations.h). Each gives the bits of
// its op's meaning: wide arithmetic in f32, rounded to the element type T wherever the meaning has a value of that
// type.

#include <cstdint>

#include "kernels/cpu/lib/house_vector.h"
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

// value * scale, times the weight: rounded to the weight's type first, as the meaning casts before it multiplies.
template <class Weight, class Lanes>
inline Floats scaled(Floats value, float scale, const void* weight, std::int64_t column, Lanes lanes) {
  const Floats y = value * scale;
  if constexpr (__is_same(Weight, NoWeight)) {
    return y;
  } else {
    return rounded_to<Weight>(rounded_to<Weight>(y) * load(static_cast<const Weight*>(weight) + column, lanes));
  }
}

inline float norm_scale(float square_sum, const NormTask& task) {
  return house_rsqrt(square_sum / static_cast<float>(task.variance_columns) + task.epsilon);
}

template <class T, class Weight>
void rms_norm(const NormTask& task) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const T* x = row_of<T>(task.x, row, task.x_stride);
    T* output = row_of<T>(task.output, row, task.output_stride);
    const float squares = vector_row_sum(task.variance_columns, [&](std::int64_t column, auto lanes) {
      const Floats f = load(x + column, lanes);
      return f * f;
    });
    const float scale = norm_scale(squares, task);
    for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
      store(output + column, scaled<Weight>(load(x + column, lanes), scale, task.weight, column, lanes), lanes);
    });
  }
}

template <class T, class Weight, bool rounded>
void fused_add_rms_norm_of(const NormTask& task) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const T* x = row_of<T>(task.x, row, task.x_stride);
    const T* residual = row_of<T>(task.residual, row, task.residual_stride);
    T* output = row_of<T>(task.output, row, task.output_stride);
    T* residual_output = row_of<T>(task.residual_output, row, task.residual_output_stride);
    const auto sum = [&](std::int64_t column, auto lanes) {
      const Floats exact = load(x + column, lanes) + load(residual + column, lanes);
      return rounded ? rounded_to<T>(exact) : exact;
    };
    const float squares = vector_row_sum(task.variance_columns, [&](std::int64_t column, auto lanes) {
      const Floats f = sum(column, lanes);
      return f * f;
    });
    const float scale = norm_scale(squares, task);
    // The sum is made again: where it may stay unrounded there is no place for it in memory.
    for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
      const Floats f = sum(column, lanes);
      store(residual_output + column, f, lanes);
      store(output + column, scaled<Weight>(f, scale, task.weight, column, lanes), lanes);
    });
  }
}

template <class T, class Weight>
void fused_add_rms_norm(const NormTask& task) {
  task.normalise_rounded ? fused_add_rms_norm_of<T, Weight, true>(task) : fused_add_rms_norm_of<T, Weight, false>(task);
}

template <Gate gate>
inline Floats activation(Floats x) {
  if constexpr (gate == Gate::silu) {
    return vector_silu(x);
  } else if constexpr (gate == Gate::gelu) {
    return (x * 0.5f) * (vector_erf(x * 0.707106781186547524f) + 1.0f);
  } else {
    const Floats inner = once_rounded_sum(x * x * x, 0.044715f, x) * 0.797884560802865356f;
    return (x * 0.5f) * (vector_tanh(inner) + 1.0f);
  }
}

template <Gate gate, class T>
void gated(const RowTask& task) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const T* x = row_of<T>(task.x, row, task.x_stride);
    T* output = row_of<T>(task.output, row, task.output_stride);
    for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
      const Floats active = rounded_to<T>(activation<gate>(load(x + column, lanes)));
      store(output + column, active * load(x + task.columns + column, lanes), lanes);
    });
  }
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

inline void store_bytes(std::int8_t* to, Integers x, AllLanes) { store_bytes(to, x); }
inline void store_bytes(std::int8_t* to, Integers x, FirstLanes lanes) {
  std::int8_t buffer[kLanes];
  store_bytes(buffer, x);
  std::memcpy(to, buffer, static_cast<unsigned>(lanes.count));
}

// The largest magnitude of a row, NaN if there is one: as integers, the bits of a NaN are above those of infinity.
template <class T>
inline float largest_magnitude(const T* x, std::int64_t columns) {
  Integers largest = {};
  for_each_vector(columns, [&](std::int64_t column, auto lanes) {
    const Integers bits = bits_of(absolute(load(x + column, lanes)));
    largest = bits > largest ? bits : largest;
  });
  float lanes[kLanes];
  store(lanes, floats_of(largest));
  std::uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits = bits_of_float(lanes[i]) > bits ? bits_of_float(lanes[i]) : bits;
  return float_of_bits(bits);
}

template <class T>
void group_quant(const GroupQuantTask& task) {
  const std::int64_t groups = task.columns / task.group;
  for (std::int64_t row = 0; row < task.rows; ++row) {
    float* scales = task.scales + row * task.scales_stride;
    for (std::int64_t group = 0; group < groups; ++group) {
      const T* x = row_of<T>(task.x, row, task.x_stride) + group * task.group;
      std::int8_t* codes = task.codes + row * task.codes_stride + group * task.group;
      const float magnitude = largest_magnitude(x, task.group);
      const float scale = (task.least > magnitude ? task.least : magnitude) / 127.0f;
      scales[group] = scale;
      const auto quantise = [&](auto rounding) {
        for_each_vector(task.group, [&](std::int64_t column, auto lanes) {
          const Floats code = rounding(at_most(at_least(load(x + column, lanes) / scale, -128.0f), 127.0f));
          store_bytes(codes + column, integers_of(code) & (code == code), lanes);
        });
      };
      task.toward_zero ? quantise([](Floats v) { return truncated(v); })
                       : quantise([](Floats v) { return round_even(v); });
    }
  }
}

inline Floats swap_pairs(Floats x) {
  Integers other;
  for (int i = 0; i < kLanes; ++i) other[i] = i ^ 1;
  return __builtin_shuffle(x, other);
}

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

// Doubles the angles for pairs that lie side by side, sines with the sign of the pair's first and second member.
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
void rotary(const RotaryTask& task) {
  float cosines[kMaxRotaryDim];
  float sines[kMaxRotaryDim];
  for (std::int64_t row = 0; row < task.rows; ++row) {
    load_angles<T>(task, task.positions[row], cosines, sines);
    if (!task.neox) spread_angles(task.rotary_dim / 2, cosines, sines);
    for (std::int64_t head = 0; head < task.heads; ++head) {
      const T* x = row_of<T>(task.x, row, task.x_stride) + head * task.head_size;
      T* output = row_of<T>(task.output, row, task.output_stride) + head * task.head_size;
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
      .group_quant = {group_quant<float>, group_quant<Half>, group_quant<Brain>},
      .rotary = {rotary<float>, rotary<Half>, rotary<Brain>},
  };
}

}  // namespace
}  // namespace weft::cpu
