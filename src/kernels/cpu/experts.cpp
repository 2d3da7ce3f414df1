// The ops of routers on the CPU: topk, topk_softmax, take_along_dim, moe_unpermute and moe_sort. They give the bits of
// their meanings and of the reference. All but moe_sort divide their rows among the threads.

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/result_kind.h"
#include "kernels/registry.h"
#include "kernels/row_chunks.h"
#include "tensor/convert.h"
#include "tensor/reference_math.h"

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

Verdict supports_rows(const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  if (!float_kind(x.dtype)) return Verdict::no(fmt::format("no rows of {}", dtype_text(x.dtype)));
  if (x.rank() != 2 || !x.shape[1].is_number()) return Verdict::no("wants a matrix with rows of a known width");
  if (!has_contiguous_rows(x)) return Verdict::no("the elements of a row are not contiguous");
  return Verdict::yes();
}

// ---- topk_softmax ----

std::int64_t row_scratch(std::int64_t width) {
  return whole_cache_lines(width * static_cast<std::int64_t>(sizeof(float)));
}

bool is_larger(float a, float b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

// Replaces the row by its softmax.
void softmax_in_place(float* row, std::int64_t width) {
  float largest = row[0];
  for (std::int64_t i = 1; i < width; ++i) largest = std::isnan(largest) || largest > row[i] ? largest : row[i];
  for (std::int64_t i = 0; i < width; ++i) row[i] = reference_exp(row[i] - largest);
  const float sum = reference_row_sum(row, width);
  for (std::int64_t i = 0; i < width; ++i) row[i] /= sum;
}

// The k largest elements, the largest first; of equal elements the one with the lower index first.
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
    const float sum = reference_row_sum(chosen, k);
    for (std::int64_t i = 0; i < k; ++i) chosen[i] /= sum;
  });
}

// ---- topk ----

// Arrays of one thread, each as long as the row.
struct TopkScratch {
  float *row, *values, *scores;
  std::int32_t* indices;

  TopkScratch(std::byte* bytes, std::int64_t width)
      : row(reinterpret_cast<float*>(bytes)),
        values(row + width),
        scores(values + width),
        indices(reinterpret_cast<std::int32_t*>(scores + width)) {}
  static std::int64_t bytes(std::int64_t width) { return 4 * row_scratch(width); }
};

struct TopkGroups {
  std::int64_t count, used, top;
};

// Moves the elements of the used groups to the front of the row. Returns their number; `indices` begins with the
// groups.
std::int64_t keep_used_groups(const TopkScratch& scratch, std::int64_t width, const TopkGroups& groups) {
  const std::int64_t size = width / groups.count;
  for (std::int64_t group = 0; group < groups.count; ++group) {
    choose(scratch.row + group * size, size, groups.top, scratch.values, scratch.indices);
    scratch.scores[group] = 0;
    for (std::int64_t i = 0; i < groups.top; ++i) scratch.scores[group] += scratch.values[i];
  }
  choose(scratch.scores, groups.count, groups.used, scratch.values, scratch.indices);
  std::sort(scratch.indices, scratch.indices + groups.used);
  for (std::int64_t i = 0; i < groups.used; ++i)
    if (scratch.indices[i] != i) std::copy_n(scratch.row + scratch.indices[i] * size, size, scratch.row + i * size);
  return groups.used * size;
}

template <class Element>
void run_topk_of(const KernelCall& call) {
  const TensorView &x = call.operands[0], &values = call.results[0], &indices = call.results[1];
  const std::int64_t width = x.size[1], k = values.size[1], bytes = TopkScratch::bytes(width);
  const TopkGroups groups{call.attributes.at("groups").integer(), call.attributes.at("used_groups").integer(),
                          call.attributes.at("group_top").integer()};
  const std::int64_t size = width / groups.count;
  for_each_row(x.size[0], row_scratch(width), call.threads, [&](std::int64_t row, int thread) {
    const TopkScratch scratch(call.scratch.data() + thread * bytes, width);
    const Element* from = x.as<const Element>() + row * x.stride[0];
    convert_row(x.dtype, reinterpret_cast<const std::byte*>(from), DType::f32,
                reinterpret_cast<std::byte*>(scratch.row), width);
    std::int32_t* const chosen = indices.as<std::int32_t>() + row * k;
    const bool has_all = groups.used == groups.count;
    const std::int64_t candidates = has_all ? width : keep_used_groups(scratch, width, groups);
    choose(scratch.row, candidates, k, scratch.values, chosen);
    for (std::int64_t i = 0; i < k; ++i) {
      if (!has_all) chosen[i] = static_cast<std::int32_t>(scratch.indices[chosen[i] / size] * size + chosen[i] % size);
      values.as<Element>()[row * k + i] = from[chosen[i]];
    }
  });
}

void run_topk(const KernelCall& call) {
  call.operands[0].dtype == DType::f32 ? run_topk_of<std::uint32_t>(call) : run_topk_of<std::uint16_t>(call);
}

// ---- take_along_dim ----

Verdict supports_take_along_dim(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &indices = *request.operands[1];
  const std::int64_t dim = request.attributes.at("dim").integer();
  if (dim != -1 && dim != static_cast<std::int64_t>(x.rank()) - 1)
    return Verdict::no(fmt::format("takes elements of rows, not of dim {}", dim));
  if (!float_kind(x.dtype)) return Verdict::no(fmt::format("no rows of {}", dtype_text(x.dtype)));
  if (!x.is_contiguous() || !indices.is_contiguous()) return Verdict::no("an operand is not contiguous");
  return Verdict::yes();
}

template <class Element>
void run_take_along_dim_of(const KernelCall& call) {
  const TensorView &x = call.operands[0], &indices = call.operands[1], &y = call.results[0];
  const std::int64_t width = x.size[x.rank - 1], count = y.size[y.rank - 1];
  if (y.elements() == 0) return;
  for_each_row(y.elements() / count, 3 * count * bytes_of(DType::i32, 1), call.threads, [&](std::int64_t row, int) {
    for (std::int64_t i = row * count; i < (row + 1) * count; ++i) {
      const std::int64_t index = index_at(indices, i);
      USER_CHECK(index >= 0 && index < width, "[take_along_dim] index {} is outside [0, {})", index, width);
      y.as<Element>()[i] = x.as<const Element>()[row * width + index];
    }
  });
}

void run_take_along_dim(const KernelCall& call) {
  call.operands[0].dtype == DType::f32 ? run_take_along_dim_of<std::uint32_t>(call)
                                       : run_take_along_dim_of<std::uint16_t>(call);
}

// ---- moe_sort ----

Verdict supports_moe_sort(const KernelRequest& request) {
  const Meta& indices = *request.operands[0];
  if (indices.dtype != DType::i32) return Verdict::no(fmt::format("no experts of {}", dtype_text(indices.dtype)));
  if (!indices.is_contiguous()) return Verdict::no("an operand is not contiguous");
  return Verdict::yes();
}

// A radix sort by the bytes of the experts' indices, the lowest byte first. A byte that all indices share is skipped.
// The results `tokens` and `experts` store the intermediate orders, before they get their own values.
void run_moe_sort(const KernelCall& call) {
  constexpr int kDigits = 256, kBits = 8;
  const TensorView &indices = call.operands[0], &positions = call.results[2];
  const std::int64_t k = indices.size[1], rows = indices.size[0] * k;
  auto* const tokens = call.results[0].as<std::int32_t>();
  auto* const experts = call.results[1].as<std::int32_t>();
  const auto* const chosen = indices.as<const std::int32_t>();
  const std::int32_t* order = nullptr;  // of the pairs; null is the order of the input
  for (int shift = 0; shift < 32; shift += kBits) {
    const auto digit = [&](std::int64_t pair) {
      constexpr std::uint32_t kSign = 0x80000000U;  // negative numbers come first
      return (static_cast<std::uint32_t>(chosen[pair]) ^ kSign) >> shift & (kDigits - 1);
    };
    std::int64_t starts[kDigits + 1] = {};
    for (std::int64_t pair = 0; pair < rows; ++pair) ++starts[digit(pair) + 1];
    if (std::find(starts, starts + kDigits + 1, rows) != starts + kDigits + 1) continue;
    for (int i = 1; i < kDigits; ++i) starts[i] += starts[i - 1];
    std::int32_t* const sorted = order == tokens ? experts : tokens;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int32_t pair = order == nullptr ? static_cast<std::int32_t>(i) : order[i];
      sorted[starts[digit(pair)]++] = pair;
    }
    order = sorted;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int32_t pair = order == nullptr ? static_cast<std::int32_t>(row) : order[row];
    positions.as<std::int32_t>()[pair] = static_cast<std::int32_t>(row);
    tokens[row] = static_cast<std::int32_t>(pair / k);
    experts[row] = chosen[pair];
  }
}

// ---- moe_unpermute ----

constexpr std::int64_t kColumnsAtOnce = 64;

Verdict supports_moe_unpermute(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weights = *request.operands[1], &positions = *request.operands[2];
  if (!float_kind(x.dtype)) return Verdict::no(fmt::format("no rows of {}", dtype_text(x.dtype)));
  if (!x.is_contiguous() || !weights.is_contiguous() || !positions.is_contiguous())
    return Verdict::no("an operand is not contiguous");
  if (positions.shape[1].number() > kReferenceSumLanes)
    return Verdict::no(fmt::format("more than {} experts of a token", kReferenceSumLanes));
  return Verdict::yes();
}

// Adds rows 1 to count - 1 to row 0, in the order in which reference_row_sum adds lanes. Its other lanes are zeros.
void add_as_lanes(float (*lanes)[kColumnsAtOnce], std::int64_t count, std::int64_t columns) {
  for (std::int64_t half = kReferenceSumLanes / 2; half > 0; half /= 2)
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
      float lanes[kReferenceSumLanes][kColumnsAtOnce];
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
  const auto add_of_rows = [&](const char* op, void (*run)(const KernelCall&), std::int64_t (*scratch)(std::int64_t)) {
    Kernel kernel;
    kernel.op = op;
    kernel.provider = "cpu";
    kernel.supported = cpu::runs_on_cpu;
    kernel.supports = cpu::supports_rows;
    kernel.prepare = [scratch](Kernel& prepared, const DeviceDescription& device) {
      prepared.scratch_bytes = [scratch, threads = device.threads](const KernelRequest& request) {
        return Dim(threads * scratch(request.operands[0]->shape[1].number()));
      };
    };
    kernel.run = run;
    kernel.note = "rows over the threads";
    registry.add(std::move(kernel));
  };
  add_of_rows("topk_softmax", cpu::run_topk_softmax, cpu::row_scratch);
  add_of_rows("topk", cpu::run_topk, cpu::TopkScratch::bytes);
  registry.add({.op = "take_along_dim",
                .provider = "cpu",
                .supported = cpu::runs_on_cpu,
                .supports = cpu::supports_take_along_dim,
                .run = cpu::run_take_along_dim,
                .note = "rows over the threads"});
  registry.add({.op = "moe_sort",
                .provider = "cpu",
                .supported = cpu::runs_on_cpu,
                .supports = cpu::supports_moe_sort,
                .run = cpu::run_moe_sort,
                .note = "by one byte of the experts' numbers after another"});
  registry.add({.op = "moe_unpermute",
                .provider = "cpu",
                .supported = cpu::runs_on_cpu,
                .supports = cpu::supports_moe_unpermute,
                .run = cpu::run_moe_unpermute,
                .note = "tokens over the threads"});
}
