// topk_softmax and moe_unpermute on the CPU, with the bits of their meanings: each pass over a row of router logits or
// over the rows of a token's experts computes the whole op. Rows are shared among the threads.

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/result_kind.h"
#include "kernels/registry.h"
#include "kernels/row_chunks.h"
#include "tensor/convert.h"
#include "tensor/house_math.h"

namespace weft::cpu {
namespace {

// Calls body(row, thread) for each row, in chunks for the threads.
template <class Body>
void for_each_row(std::int64_t rows, std::int64_t row_bytes, ThreadPool& threads, const Body& body) {
  if (rows == 0) return;
  const std::int64_t chunk = rows_of_chunk(rows, row_bytes, threads.threads());
  threads.run((rows + chunk - 1) / chunk, [&](std::int64_t number, int thread) {
    for (std::int64_t row = number * chunk; row < std::min(rows, (number + 1) * chunk); ++row) body(row, thread);
  });
}

// ---- topk_softmax ----

Verdict supports_topk_softmax(const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  if (!float_kind(x.dtype)) return Verdict::no(fmt::format("no rows of {}", dtype_text(x.dtype)));
  if (x.rank() != 2 || !x.shape[1].is_number()) return Verdict::no("wants a matrix with rows of a known width");
  if (!has_contiguous_rows(x)) return Verdict::no("the elements of a row are not contiguous");
  return Verdict::yes();
}

std::int64_t row_scratch(std::int64_t width) {
  return whole_cache_lines(width * static_cast<std::int64_t>(sizeof(float)));
}

bool is_larger(float a, float b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

// Replaces the row by its softmax.
void softmax_in_place(float* row, std::int64_t width) {
  float largest = row[0];
  for (std::int64_t i = 1; i < width; ++i) largest = std::isnan(largest) || largest > row[i] ? largest : row[i];
  for (std::int64_t i = 0; i < width; ++i) row[i] = house_exp(row[i] - largest);
  const float sum = house_row_sum(row, width);
  for (std::int64_t i = 0; i < width; ++i) row[i] /= sum;
}

// The k largest, the largest first; of equal ones the lower index first.
void choose(const float* row, std::int64_t width, std::int64_t k, float* values, std::int32_t* indices) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    if (count == k && !is_larger(row[i], values[k - 1])) continue;
    std::int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && is_larger(row[i], values[at - 1]); --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = row[i];
    indices[at] = static_cast<std::int32_t>(i);
  }
}

void run_topk_softmax(const KernelCall& call) {
  const TensorView &x = call.operands[0], &weights = call.results[0], &indices = call.results[1];
  const std::int64_t width = x.size[1], k = weights.size[1], bytes = row_scratch(width);
  const bool renormalizes = call.attributes.at("renormalize").boolean();
  for_each_row(x.size[0], bytes, call.threads, [&](std::int64_t row, int thread) {
    auto* const scores = reinterpret_cast<float*>(call.scratch.data() + thread * bytes);
    convert_row(x.dtype, x.data + bytes_of(x.dtype, row * x.stride[0]), DType::f32,
                reinterpret_cast<std::byte*>(scores), width);
    softmax_in_place(scores, width);
    float* const chosen = weights.as<float>() + row * k;
    choose(scores, width, k, chosen, indices.as<std::int32_t>() + row * k);
    if (!renormalizes) return;
    const float sum = house_row_sum(chosen, k);
    for (std::int64_t i = 0; i < k; ++i) chosen[i] /= sum;
  });
}

// ---- moe_unpermute ----

constexpr std::int64_t kColumnsAtOnce = 64;

Verdict supports_moe_unpermute(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weights = *request.operands[1], &positions = *request.operands[2];
  if (!float_kind(x.dtype)) return Verdict::no(fmt::format("no rows of {}", dtype_text(x.dtype)));
  if (!x.is_contiguous() || !weights.is_contiguous() || !positions.is_contiguous())
    return Verdict::no("an operand is not contiguous");
  if (positions.shape[1].number() > kHouseSumLanes)
    return Verdict::no(fmt::format("more than {} experts of a token", kHouseSumLanes));
  return Verdict::yes();
}

// Sums `count` rows of columns into the first one, in the order of house_row_sum, whose other lanes are zeros.
void add_as_lanes(float (*lanes)[kColumnsAtOnce], std::int64_t count, std::int64_t columns) {
  for (std::int64_t half = kHouseSumLanes / 2; half > 0; half /= 2)
    for (std::int64_t j = 0; j < half && j + half < count; ++j)
      for (std::int64_t column = 0; column < columns; ++column) lanes[j][column] += lanes[j + half][column];
}

void run_moe_unpermute(const KernelCall& call) {
  const TensorView &x = call.operands[0], &weights = call.operands[1], &positions = call.operands[2];
  const TensorView& y = call.results[0];
  const std::int64_t k = positions.size[1], width = x.size[1];
  for_each_row(positions.size[0], (k + 1) * bytes_of(x.dtype, width), call.threads, [&](std::int64_t row, int) {
    for (std::int64_t first = 0; first < width; first += kColumnsAtOnce) {
      const std::int64_t columns = std::min(kColumnsAtOnce, width - first);
      float lanes[kHouseSumLanes][kColumnsAtOnce];
      for (std::int64_t j = 0; j < k; ++j) {
        const std::int64_t position = index_at(positions, row * k + j);
        USER_CHECK(position >= 0 && position < x.size[0], "[moe_unpermute] position {} is outside [0, {})", position,
                   x.size[0]);
        convert_row(x.dtype, x.data + bytes_of(x.dtype, position * width + first), DType::f32,
                    reinterpret_cast<std::byte*>(lanes[j]), columns);
        const float weight = weights.as<const float>()[row * k + j];
        for (std::int64_t column = 0; column < columns; ++column) lanes[j][column] = 0.0f + lanes[j][column] * weight;
      }
      add_as_lanes(lanes, k, columns);
      convert_row(DType::f32, reinterpret_cast<const std::byte*>(lanes[0]), y.dtype,
                  y.data + bytes_of(y.dtype, row * width + first), columns);
    }
  });
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, experts) {
  Kernel topk;
  topk.op = "topk_softmax";
  topk.provider = "cpu";
  topk.supported = cpu::runs_on_cpu;
  topk.supports = cpu::supports_topk_softmax;
  topk.prepare = [](Kernel& prepared, const DeviceDescription& device) {
    prepared.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      return Dim(threads * cpu::row_scratch(request.operands[0]->shape[1].number()));
    };
  };
  topk.run = cpu::run_topk_softmax;
  topk.note = "rows over the threads";
  registry.add(std::move(topk));
  registry.add({.op = "moe_unpermute",
                .provider = "cpu",
                .supported = cpu::runs_on_cpu,
                .supports = cpu::supports_moe_unpermute,
                .run = cpu::run_moe_unpermute,
                .note = "tokens over the threads"});
}
