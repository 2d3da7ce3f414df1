#pragma once

// Quantization of rows, alone and as the epilogue of another row-wise op, for one instruction set (WEFT_FLOAT_VECTORS:
// see float_vector_operations.h). Codes and scales have the bits of the two ops one after the other: a value that the
// first op would store is rounded to its element type T before it is quantized.

#include <cstdint>

#include "kernels/cpu/lib/paired_products.h"
#include "kernels/cpu/lib/quantize_codes.h"
#include "kernels/cpu/lib/quantize_fp4.h"
#include "kernels/cpu/lib/quantize_fp8.h"
#include "kernels/cpu/lib/row_wise_skeleton.h"

namespace weft::cpu {
namespace {

template <class F>
__attribute__((noinline)) void quantize(const QuantTask& task, const Part<F>& part) {
  switch (task.rule) {
    case QuantRule::int8_groups:
      return quantize_int8_groups<F>(task, part);
    case QuantRule::int8_rows:
      return quantize_int8_row<F>(task, part);
    case QuantRule::fp8_groups:
      return quantize_fp8_groups<F>(task, part);
    case QuantRule::fp8_given:
      return quantize_fp8_given<F>(task, part);
    case QuantRule::fp4_groups:
      return quantize_fp4_groups<F>(task, part);
  }
}

// Columns that are quantized at a time: whole groups.
inline std::int64_t columns_at_a_time(const QuantTask& task) {
  return task.group > kBlockColumns ? task.group : kBlockColumns / task.group * task.group;
}

inline std::int8_t* codes_at(const QuantTask& task, std::int64_t row, std::int64_t column) {
  return task.codes + row * task.codes_stride + (task.rule == QuantRule::fp4_groups ? column / 2 : column);
}

template <class T>
void quantized_rows(const QuantTask& task) {
  const std::int64_t width = columns_at_a_time(task);
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const T* x = row_of<T>(task.x, row, task.x_stride);
    for (std::int64_t first = 0; first < task.columns; first += width) {
      const std::int64_t columns = task.columns - first < width ? task.columns - first : width;
      quantize<PlainForm<T>>(task, {x + first, codes_at(task, row, first), row, columns, first / task.group});
    }
  }
}

// Keeps a row's values, rounded to R, until the scale of their group is known. They are in L1 unless groups are longer.
template <class R>
struct Waiting {
  explicit Waiting(const QuantTask& quant) : task(quant), width(columns_at_a_time(quant)) {}

  // Quantizes `columns` of the kept values: columns of the row from `first` on.
  template <bool paired>
  void take(std::int64_t row, std::int64_t first, std::int64_t columns) const {
    quantize<Form<float, sizeof(R) == 2, paired>>(
        task, {values, codes_at(task, row, first), row, columns, first / task.group});
  }

  const QuantTask& task;
  std::int64_t width;
  float values[kWaitingColumns];
};

// Quantizes all columns of a row. value(column, lanes) is the result of rms_norm or fused_add_rms_norm there.
template <class T, class Weight, class Value>
__attribute__((always_inline)) inline void quantize_values(Waiting<T>& waiting, std::int64_t row, Value value) {
  const std::int64_t all = waiting.task.columns;
  for (std::int64_t first = 0; first < all; first += waiting.width) {
    const std::int64_t columns = all - first < waiting.width ? all - first : waiting.width;
    for_each_vector(columns, [&](std::int64_t column, auto lanes) {
      store(waiting.values + column, rounded_scaled<T, Weight>(value(first + column, lanes)), lanes);
    });
    waiting.template take<false>(row, first, columns);
  }
}

template <class T, class Weight>
void quantized_rms_norm_values(const NormTask& task, const QuantTask& quant) {
  Waiting<T> waiting(quant);
  normalized_rows<T, Weight>(
      task, [&](std::int64_t row, auto value)
                __attribute__((always_inline)) { quantize_values<T, Weight>(waiting, row, value); });
}

template <class T, class Weight>
void quantized_rms_norm(const NormTask& task, const QuantTask& quant) {
  if constexpr (__is_same(T, Brain) && __is_same(Weight, Brain)) {
    if (task.variance_columns == task.columns && quantizes_products(quant))
      return quantized_norm_products(task, quant, [&](std::int64_t row) {
        NormTask alone = task;
        alone.x = row_of<T>(task.x, row, task.x_stride);
        alone.rows = 1;
        quantized_rms_norm_values<T, Weight>(alone, row_alone(quant, row));
      });
  }
  quantized_rms_norm_values<T, Weight>(task, quant);
}

template <class T, class Weight>
void quantized_fused_add_rms_norm(const NormTask& task, const QuantTask& quant) {
  if constexpr (__is_same(T, Brain) && __is_same(Weight, Brain)) {
    if (task.normalize_rounded && task.variance_columns == task.columns && quantizes_products(quant))
      return quantized_sum_norm_products(task, quant, [&](std::int64_t row, const T* sums, float scale) {
        Waiting<T> waiting(quant);
        quantize_values<T, Weight>(waiting, row, [&](std::int64_t column, auto lanes) {
          return scaled<Weight>(load(sums + column, lanes), scale, task.weight, column, lanes);
        });
      });
  }
  Waiting<T> waiting(quant);
  const auto take = [&](std::int64_t row, auto value) __attribute__((always_inline)) {
    quantize_values<T, Weight>(waiting, row, value);
  };
  task.normalize_rounded ? normalized_sums<T, Weight, true>(task, take) : normalized_sums<T, Weight, false>(task, take);
}

// The values of blocks are kept until whole groups are complete.
template <Gate gate, class T, class R, bool paired>
void quantized_gate(const RowTask& task, const QuantTask& quant) {
  Waiting<R> waiting(quant);
  const std::int64_t width = waiting.width, block = width > kBlockColumns ? kBlockColumns : width;
  std::int64_t begin = 0;  // the column of the first value that is kept
  gated_blocks<gate, T, R, paired>(
      task, block,
      [&](std::int64_t row, std::int64_t first, std::int64_t columns, auto value) __attribute__((always_inline)) {
        if (first == 0) begin = 0;
        float* to = waiting.values + (first - begin);
        for_each_vector_or_pair<paired>(columns, [&](std::int64_t column, auto lanes) {
          store(to + column, rounded_result<R>(value(column, lanes)), lanes);
        });
        const std::int64_t end = first + columns;
        if (end - begin < width && end < task.columns) return;
        waiting.template take<paired>(row, begin, end - begin);
        begin = end;
      });
}

template <Gate gate, class T>
void quantized_gate_of(const RowTask& task, const QuantTask& quant) {
  if constexpr (gate == Gate::silu && __is_same(T, Brain)) {
    if (quantizes_products(quant))
      return quantized_silu_products(task, quant, [&](std::int64_t row) {
        RowTask alone = task;
        alone.x = row_of<T>(task.x, row, task.x_stride);
        alone.rows = 1;
        quantized_gate<gate, T, T, true>(alone, row_alone(quant, row));
      });
  }
  if constexpr (__is_same(T, Brain)) {
    if (quant.group % kTogether == 0 && quant.columns % kTogether == 0)
      return quantized_gate<gate, T, T, true>(task, quant);
  }
  quantized_gate<gate, T, T, false>(task, quant);
}

template <Gate gate, class T>
void quantized_wide_gate(const RowTask& task, const QuantTask& quant) {
  quantized_gate<gate, T, float, false>(task, quant);
}

constexpr QuantizedRowKernels make_quantized_row_kernels() {
  return {
      .rows = {quantized_rows<float>, quantized_rows<Half>, quantized_rows<Brain>},
      .rms_norm =
          {{quantized_rms_norm<float, NoWeight>, quantized_rms_norm<float, float>, quantized_rms_norm<float, float>},
           {quantized_rms_norm<Half, NoWeight>, quantized_rms_norm<Half, float>, quantized_rms_norm<Half, Half>},
           {quantized_rms_norm<Brain, NoWeight>, quantized_rms_norm<Brain, float>, quantized_rms_norm<Brain, Brain>}},
      .fused_add_rms_norm = {{quantized_fused_add_rms_norm<float, NoWeight>, quantized_fused_add_rms_norm<float, float>,
                              quantized_fused_add_rms_norm<float, float>},
                             {quantized_fused_add_rms_norm<Half, NoWeight>, quantized_fused_add_rms_norm<Half, float>,
                              quantized_fused_add_rms_norm<Half, Half>},
                             {quantized_fused_add_rms_norm<Brain, NoWeight>, quantized_fused_add_rms_norm<Brain, float>,
                              quantized_fused_add_rms_norm<Brain, Brain>}},
      .gated = {{quantized_gate_of<Gate::silu, float>, quantized_gate_of<Gate::silu, Half>,
                 quantized_gate_of<Gate::silu, Brain>},
                {quantized_gate_of<Gate::gelu, float>, quantized_gate_of<Gate::gelu, Half>,
                 quantized_gate_of<Gate::gelu, Brain>},
                {quantized_gate_of<Gate::gelu_tanh, float>, quantized_gate_of<Gate::gelu_tanh, Half>,
                 quantized_gate_of<Gate::gelu_tanh, Brain>}},
      .gated_wide = {{quantized_gate_of<Gate::silu, float>, quantized_wide_gate<Gate::silu, Half>,
                      quantized_wide_gate<Gate::silu, Brain>},
                     {quantized_gate_of<Gate::gelu, float>, quantized_wide_gate<Gate::gelu, Half>,
                      quantized_wide_gate<Gate::gelu, Brain>},
                     {quantized_gate_of<Gate::gelu_tanh, float>, quantized_wide_gate<Gate::gelu_tanh, Half>,
                      quantized_wide_gate<Gate::gelu_tanh, Brain>}},
  };
}

}  // namespace
}  // namespace weft::cpu
