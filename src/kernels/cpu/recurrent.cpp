// causal_conv1d, linear_attention and selective_scan. Parallel over sequences and parts of their channels, or their
// value heads. Rows of a sequence follow one another. States are updated in the pages in which they are left.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/lib/recurrent_kernels.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/recurrent_pages.h"
#include "kernels/registry.h"
#include "tensor/batch.h"
#include "tensor/reference_math.h"

namespace weft::cpu {
namespace {

constexpr const char* kNote = "sequences, and channels or heads, in parallel; baseline, AVX2, AVX-512";

template <void (*run)(const RecurrentKernels&, const KernelCall&)>
void prepare_recurrent(Kernel& kernel, const DeviceDescription& device) {
  const RecurrentKernels* kernels =
      table_for(device, recurrent_kernels_baseline, recurrent_kernels_avx2, recurrent_kernels_avx512);
  kernel.run = [kernels](const KernelCall& call) { run(*kernels, call); };
}

void zero_columns(const TensorView& y, const RecurrentRun& run, std::int64_t first, std::int64_t count) {
  for (std::int64_t row = run.first_row; row < run.end_row; ++row)
    std::memset(y.data + bytes_of(y.dtype, row * y.stride[0] + first), 0,
                static_cast<std::size_t>(bytes_of(y.dtype, count)));
}

namespace convolution {

enum Operand : std::size_t { kX, kTaps, kBias, kStates, kBatch, kSlots };
constexpr std::int64_t kPart = 256;  // channels of a chunk

Verdict supports(const KernelRequest& request) {
  if (Verdict verdict = float_rows(request.operands[kX], "x"); !verdict) return verdict;
  const Meta& taps = *request.operands[kTaps];
  if (!taps.is_contiguous()) return Verdict::no("taps are not contiguous");
  if (request.operands[kBias] && !request.operands[kBias]->is_contiguous())
    return Verdict::no("bias is not contiguous");
  if (taps.shape[0].number() > kMostTaps)
    return Verdict::no("there are more than " + std::to_string(kMostTaps) + " taps");
  return Verdict::yes();
}

void run(const RecurrentKernels& kernels, const KernelCall& call) {
  const TensorView &x = call.operands[kX], &taps = call.operands[kTaps], &bias = call.operands[kBias];
  const TensorView &y = call.results[0], &pages = call.results[1];
  const Batch& batch = *call.operands[kBatch].as<Batch>();
  const KvLayout& kv = pages.meta->kv;
  check_batch(batch, x.size[0], kv.block, pages.size[0]);
  const auto function = kernels.convolution[static_cast<std::size_t>(element_of(x.dtype))][taps.size[0]];
  const std::int64_t parts = (kv.head_dim + kPart - 1) / kPart, page_elements = kv_page_elements(kv);
  call.threads.run(batch.sequences * parts, [&](std::int64_t chunk, int) {
    const std::int64_t first = chunk % parts * kPart, columns = std::min(kPart, kv.head_dim - first);
    const auto sequence = static_cast<std::int32_t>(chunk / parts);
    for_each_recurrent_run(batch, call.operands[kSlots], sequence, kv.block, [&](const RecurrentRun& run) {
      if (run.is_padding) return zero_columns(y, run, first, columns);
      for (std::int64_t row = 0; row < kv.state_rows; ++row)
        begin_recurrent_run(run, pages.as<float>(), page_elements, row * kv.head_dim + first, columns);
      function({.x = x.data + bytes_of(x.dtype, run.first_row * x.stride[0] + first),
                .y = y.data + bytes_of(y.dtype, run.first_row * y.stride[0] + first),
                .taps = taps.as<float>() + first,
                .bias = bias.present() ? bias.as<float>() + first : nullptr,
                .state = pages.as<float>() + run.page * page_elements + first,
                .x_stride = x.stride[0],
                .y_stride = y.stride[0],
                .taps_stride = kv.head_dim,
                .state_stride = kv.head_dim,
                .rows = run.end_row - run.first_row,
                .columns = columns});
    });
  });
}

}  // namespace convolution

namespace linear {

enum Operand : std::size_t { kQuery, kKey, kValue, kLogDecay, kBeta, kStates, kBatch, kSlots };
constexpr std::int64_t kRows = 16;  // whose queries and keys are widened at once

Verdict supports(const KernelRequest& request) {
  for (const auto& [at, name] : {std::pair(kQuery, "query"), {kKey, "key"}, {kValue, "value"}})
    if (Verdict verdict = float_rows(request.operands[at], name); !verdict) return verdict;
  return Verdict::yes();
}

// Scratch of a thread: a part of a state, and queries, keys, decays and betas of kRows rows.
std::int64_t thread_bytes(std::int64_t key_dim) {
  return whole_cache_lines((kMostLanes * key_dim + 2 * kRows * (key_dim + 1)) * std::int64_t{sizeof(float)});
}

// The data that all chunks share.
struct Call {
  const TensorView &query, &key, &value, &log_decay, &beta, &y, &pages;
  const RecurrentKernels& kernels;
  std::int64_t shared;  // value heads of a key head
  float scale;
  bool is_delta;
};

const std::byte* row_of(const TensorView& x, std::int64_t row, std::int64_t head) {
  return x.data + bytes_of(x.dtype, row * x.stride[0] + head * x.stride[1]);
}
float number_of(const TensorView& x, std::int64_t row, std::int64_t head) {
  return x.as<float>()[row * x.stride[0] + head * x.stride[1]];
}

// The rows [first, end) of one head, at most kRows, with the state in place.
void run_rows(const Call& call, std::int64_t first, std::int64_t end, std::int64_t head, float* state, float* scratch) {
  const std::int64_t key_dim = call.query.size[2], rows = end - first;
  const auto element = static_cast<std::size_t>(element_of(call.query.dtype));
  float *tile = scratch, *query = tile + kMostLanes * key_dim, *key = query + kRows * key_dim,
        *decay = key + kRows * key_dim, *beta = decay + kRows;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = first + i, key_head = head / call.shared;
    call.kernels.widen[element](row_of(call.query, row, key_head), query + i * key_dim, key_dim);
    call.kernels.widen[element](row_of(call.key, row, key_head), key + i * key_dim, key_dim);
    decay[i] = reference_exp(number_of(call.log_decay, row, head));
    beta[i] = number_of(call.beta, row, head);
  }
  call.kernels.linear_attention[element]({.query = query,
                                          .key = key,
                                          .value = row_of(call.value, first, head),
                                          .decay = decay,
                                          .beta = beta,
                                          .state = state,
                                          .tile = tile,
                                          .output = const_cast<std::byte*>(row_of(call.y, first, head)),
                                          .value_stride = call.value.stride[0],
                                          .output_stride = call.y.stride[0],
                                          .rows = rows,
                                          .key_dim = key_dim,
                                          .value_dim = call.value.size[2],
                                          .scale = call.scale,
                                          .delta = call.is_delta});
}

void run(const RecurrentKernels& kernels, const KernelCall& kernel_call) {
  const auto& operands = kernel_call.operands;
  const Call call{.query = operands[kQuery],
                  .key = operands[kKey],
                  .value = operands[kValue],
                  .log_decay = operands[kLogDecay],
                  .beta = operands[kBeta],
                  .y = kernel_call.results[0],
                  .pages = kernel_call.results[1],
                  .kernels = kernels,
                  .shared = operands[kValue].size[1] / operands[kKey].size[1],
                  .scale = static_cast<float>(kernel_call.attributes.at("scale").real()),
                  .is_delta = kernel_call.attributes.at("delta").boolean()};
  const Batch& batch = *operands[kBatch].as<Batch>();
  const KvLayout& kv = call.pages.meta->kv;
  check_batch(batch, call.query.size[0], kv.block, call.pages.size[0]);
  const std::int64_t page_elements = kv_page_elements(kv), head_elements = kv_head_elements(kv);
  kernel_call.threads.run(batch.sequences * kv.heads, [&](std::int64_t chunk, int thread) {
    auto* scratch = reinterpret_cast<float*>(kernel_call.scratch.data() + thread * thread_bytes(call.query.size[2]));
    const std::int64_t head = chunk % kv.heads;
    const auto sequence = static_cast<std::int32_t>(chunk / kv.heads);
    for_each_recurrent_run(batch, operands[kSlots], sequence, kv.block, [&](const RecurrentRun& run) {
      if (run.is_padding) return zero_columns(call.y, run, head * call.y.stride[1], call.y.size[2]);
      begin_recurrent_run(run, call.pages.as<float>(), page_elements, head * head_elements, head_elements);
      float* state = call.pages.as<float>() + run.page * page_elements + head * head_elements;
      for (std::int64_t row = run.first_row; row < run.end_row; row += kRows)
        run_rows(call, row, std::min(row + kRows, run.end_row), head, state, scratch);
    });
  });
}

}  // namespace linear

namespace scan {

enum Operand : std::size_t { kX, kStep, kDecay, kInput, kOutput, kStates, kBatch, kSlots };
constexpr std::int64_t kPart = 256;  // channels of a chunk
constexpr std::int64_t kRows = 16;   // whose inputs and outputs are widened at once

Verdict supports(const KernelRequest& request) {
  for (const auto& [at, name] : {std::pair(kX, "x"), {kStep, "step"}, {kInput, "input"}, {kOutput, "output"}})
    if (Verdict verdict = float_rows(request.operands[at], name); !verdict) return verdict;
  return request.operands[kDecay]->is_contiguous() ? Verdict::yes() : Verdict::no("decay is not contiguous");
}

std::int64_t thread_bytes(std::int64_t state_rows) {
  return whole_cache_lines(2 * kRows * state_rows * std::int64_t{sizeof(float)});
}

// The data that all chunks share.
struct Call {
  const TensorView &x, &steps, &decay, &input, &output, &y, &pages;
  const RecurrentKernels& kernels;
  const KvLayout& kv;
};

// The rows [first, end), at most kRows, of some channels.
void run_rows(const Call& call, std::int64_t first, std::int64_t end, std::int64_t column, std::int64_t columns,
              float* state, float* scratch) {
  const auto element = static_cast<std::size_t>(element_of(call.x.dtype));
  const std::int64_t state_rows = call.kv.state_rows, rows = end - first;
  float *input = scratch, *output = scratch + kRows * state_rows;
  const auto at = [](const TensorView& of, std::int64_t row, std::int64_t place) {
    return of.data + bytes_of(of.dtype, row * of.stride[0] + place);
  };
  for (std::int64_t i = 0; i < rows; ++i) {
    call.kernels.widen[element](at(call.input, first + i, 0), input + i * state_rows, state_rows);
    call.kernels.widen[element](at(call.output, first + i, 0), output + i * state_rows, state_rows);
  }
  call.kernels.selective_scan[element]({.x = at(call.x, first, column),
                                        .y = at(call.y, first, column),
                                        .steps = call.steps.as<float>() + first * call.steps.stride[0] + column,
                                        .decay = call.decay.as<float>() + column,
                                        .input = input,
                                        .output = output,
                                        .state = state,
                                        .x_stride = call.x.stride[0],
                                        .y_stride = call.y.stride[0],
                                        .steps_stride = call.steps.stride[0],
                                        .state_stride = call.kv.head_dim,
                                        .rows = rows,
                                        .state_rows = state_rows,
                                        .columns = columns});
}

void run(const RecurrentKernels& kernels, const KernelCall& kernel_call) {
  const auto& operands = kernel_call.operands;
  const TensorView& pages = kernel_call.results[1];
  const Call call{.x = operands[kX],
                  .steps = operands[kStep],
                  .decay = operands[kDecay],
                  .input = operands[kInput],
                  .output = operands[kOutput],
                  .y = kernel_call.results[0],
                  .pages = pages,
                  .kernels = kernels,
                  .kv = pages.meta->kv};
  const Batch& batch = *operands[kBatch].as<Batch>();
  const KvLayout& kv = call.kv;
  check_batch(batch, call.x.size[0], kv.block, pages.size[0]);
  const std::int64_t parts = (kv.head_dim + kPart - 1) / kPart, page_elements = kv_page_elements(kv);
  kernel_call.threads.run(batch.sequences * parts, [&](std::int64_t chunk, int thread) {
    auto* scratch = reinterpret_cast<float*>(kernel_call.scratch.data() + thread * thread_bytes(kv.state_rows));
    const std::int64_t first = chunk % parts * kPart, columns = std::min(kPart, kv.head_dim - first);
    const auto sequence = static_cast<std::int32_t>(chunk / parts);
    for_each_recurrent_run(batch, operands[kSlots], sequence, kv.block, [&](const RecurrentRun& run) {
      if (run.is_padding) return zero_columns(call.y, run, first, columns);
      for (std::int64_t row = 0; row < kv.state_rows; ++row)
        begin_recurrent_run(run, pages.as<float>(), page_elements, row * kv.head_dim + first, columns);
      float* state = pages.as<float>() + run.page * page_elements + first;
      for (std::int64_t row = run.first_row; row < run.end_row; row += kRows)
        run_rows(call, row, std::min(row + kRows, run.end_row), first, columns, state, scratch);
    });
  });
}

}  // namespace scan
}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, recurrent) {
  using namespace weft::cpu;
  registry.add({.op = "causal_conv1d",
                .provider = "cpu",
                .supports = convolution::supports,
                .prepare = prepare_recurrent<convolution::run>,
                .writes = {convolution::kStates},
                .note = kNote});
  const auto prepare_linear = [](Kernel& kernel, const DeviceDescription& device) {
    prepare_recurrent<linear::run>(kernel, device);
    kernel.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      return Dim(threads * linear::thread_bytes(request.operands[linear::kQuery]->shape[2].number()));
    };
  };
  registry.add({.op = "linear_attention",
                .provider = "cpu",
                .supports = linear::supports,
                .prepare = prepare_linear,
                .writes = {linear::kStates},
                .note = kNote});
  const auto prepare_scan = [](Kernel& kernel, const DeviceDescription& device) {
    prepare_recurrent<scan::run>(kernel, device);
    kernel.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      return Dim(threads * scan::thread_bytes(request.operands[scan::kDecay]->shape[0].number()));
    };
  };
  registry.add({.op = "selective_scan",
                .provider = "cpu",
                .supports = scan::supports,
                .prepare = prepare_scan,
                .writes = {scan::kStates},
                .note = kNote});
}
