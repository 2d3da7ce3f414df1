#pragma once

// causal_conv1d, linear_attention and selective_scan for one instruction set (WEFT_FLOAT_VECTORS: see
// float_vector_operations.h). The state of one vector of columns stays in the nearest cache, or in registers, for all
// rows. AVX2 and AVX-512 have the same bits; without fused multiply-adds, products round by themselves.

#include <cstdint>

#include "kernels/cpu/lib/float_vector_operations.h"
#include "kernels/cpu/lib/recurrent_kernels.h"
#include "kernels/cpu/lib/reference_vector.h"

namespace weft::cpu {
namespace {

template <class T, int count>
void convolution(const ConvolutionTask& task) {
  for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
    Floats taps[count], window[count];
    for (int j = 0; j < count; ++j) taps[j] = load(task.taps + j * task.taps_stride + column, lanes);
    for (int j = 0; j + 1 < count; ++j) window[j] = load(task.state + j * task.state_stride + column, lanes);
    const Floats bias = task.bias == nullptr ? Floats{} : load(task.bias + column, lanes);
    for (std::int64_t row = 0; row < task.rows; ++row) {
      window[count - 1] = load(static_cast<const T*>(task.x) + row * task.x_stride + column, lanes);
      Floats sum = taps[0] * window[0];
      for (int j = 1; j < count; ++j) sum = multiply_add(taps[j], window[j], sum);
      if (task.bias != nullptr) sum = sum + bias;
      store(static_cast<T*>(task.y) + row * task.y_stride + column, sum, lanes);
      for (int j = 0; j + 1 < count; ++j) window[j] = window[j + 1];
    }
    for (int j = 0; j + 1 < count; ++j) store(task.state + j * task.state_stride + column, window[j], lanes);
  });
}

// Sums over the rows of a state have as many chains, so that an addition need not wait for the one before it.
constexpr int kChains = 4;
struct Chains {
  Floats sums[kChains] = {};
  Floats total() const { return (sums[0] + sums[1]) + (sums[2] + sums[3]); }
};

// Calls step(i, chain) for all rows of a state.
template <class Step>
inline __attribute__((always_inline)) void for_each_state_row(std::int64_t rows, Step step) {
  std::int64_t i = 0;
  for (; i + kChains <= rows; i += kChains)
    for (int chain = 0; chain < kChains; ++chain) step(i + chain, chain);
  for (int chain = 0; i < rows; ++i, ++chain) step(i, chain);
}

// One row, for one vector of columns. The rows of the state are `stride` apart.
template <class T, class Lanes, class StateLanes>
inline __attribute__((always_inline)) void attend(const LinearAttentionTask& task, std::int64_t row,
                                                  std::int64_t column, float* state, std::int64_t stride, Lanes lanes,
                                                  StateLanes state_lanes) {
  const float *key = task.key + row * task.key_dim, *query = task.query + row * task.key_dim;
  const Floats decay = fill(task.decay[row]);
  Floats change = load(static_cast<const T*>(task.value) + row * task.value_stride + column, lanes);
  if (task.delta) {
    Chains stored;
    for_each_state_row(
        task.key_dim, [&](std::int64_t i, int chain) __attribute__((always_inline)) {
          stored.sums[chain] = multiply_add(fill(key[i]), load(state + i * stride, state_lanes), stored.sums[chain]);
        });
    change = change - decay * stored.total();
  }
  change = fill(task.beta[row]) * change;
  Chains found;
  for_each_state_row(
      task.key_dim, [&](std::int64_t i, int chain) __attribute__((always_inline)) {
        const Floats element = multiply_add(fill(key[i]), change, load(state + i * stride, state_lanes) * decay);
        store(state + i * stride, element, state_lanes);
        found.sums[chain] = multiply_add(fill(query[i]), element, found.sums[chain]);
      });
  T* output = static_cast<T*>(task.output) + row * task.output_stride + column;
  store(output, fill(task.scale) * found.total(), lanes);
}

// Several rows have a copy of the columns' part of the state: its rows of a power of two bytes would share few places
// of the nearest cache.
template <class T>
void linear_attention(const LinearAttentionTask& task) {
  for_each_vector(task.value_dim, [&](std::int64_t column, auto lanes) {
    float* state = task.state + column;
    if (task.rows == 1) return attend<T>(task, 0, column, state, task.value_dim, lanes, lanes);
    for (std::int64_t i = 0; i < task.key_dim; ++i)
      store(task.tile + i * kLanes, load(state + i * task.value_dim, lanes));
    for (std::int64_t row = 0; row < task.rows; ++row)
      attend<T>(task, row, column, task.tile, kLanes, lanes, AllLanes{});
    for (std::int64_t i = 0; i < task.key_dim; ++i)
      store(state + i * task.value_dim, load(task.tile + i * kLanes), lanes);
  });
}

template <class T>
void selective_scan(const SelectiveScanTask& task) {
  for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
    for (std::int64_t row = 0; row < task.rows; ++row) {
      const float *input = task.input + row * task.state_rows, *output = task.output + row * task.state_rows;
      const Floats step = load(task.steps + row * task.steps_stride + column, lanes);
      const Floats change = step * load(static_cast<const T*>(task.x) + row * task.x_stride + column, lanes);
      Chains found;
      for_each_state_row(
          task.state_rows, [&](std::int64_t i, int chain) __attribute__((always_inline)) {
            const std::int64_t at = i * task.state_stride + column;
            const Floats decay = vector_exp(step * load(task.decay + at, lanes));
            const Floats element = multiply_add(fill(input[i]), change, load(task.state + at, lanes) * decay);
            store(task.state + at, element, lanes);
            found.sums[chain] = multiply_add(fill(output[i]), element, found.sums[chain]);
          });
      store(static_cast<T*>(task.y) + row * task.y_stride + column, found.total(), lanes);
    }
  });
}

template <class T>
void widen(const void* from, float* to, std::int64_t count) {
  for_each_vector(count, [&](std::int64_t column, auto lanes) {
    store(to + column, load(static_cast<const T*>(from) + column, lanes), lanes);
  });
}

constexpr RecurrentKernels make_recurrent_kernels() {
  RecurrentKernels kernels{};
  const auto add = [&]<class T>(Element element, T*) {
    const int at = static_cast<int>(element);
    kernels.convolution[at][2] = convolution<T, 2>;
    kernels.convolution[at][3] = convolution<T, 3>;
    kernels.convolution[at][4] = convolution<T, 4>;
    kernels.linear_attention[at] = linear_attention<T>;
    kernels.selective_scan[at] = selective_scan<T>;
    kernels.widen[at] = widen<T>;
  };
  add(Element::f32, static_cast<float*>(nullptr));
  add(Element::f16, static_cast<Half*>(nullptr));
  add(Element::bf16, static_cast<Brain*>(nullptr));
  return kernels;
}

}  // namespace
}  // namespace weft::cpu
