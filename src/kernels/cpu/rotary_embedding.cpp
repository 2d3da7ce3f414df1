// rotary_embedding, and fused_qk_norm_rope with the normalisation of each head before it; NeoX halves and GPT-J pairs,
// also of a part of the head. Parallel over tokens. Query and key are read where they lie, as columns of one product;
// the results are packed rows, so nothing is written over.

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

enum Operand : std::size_t { kPositions, kQuery, kKey, kCosSinCache };
// Of fused_qk_norm_rope.
enum NormOperand : std::size_t { kQueryWeight = 3, kKeyWeight, kNormCosSinCache };

Verdict supports_rotation(const KernelRequest& request, std::size_t table) {
  const std::optional<Meta>& positions = request.operands[kPositions];
  const std::optional<Meta>& query = request.operands[kQuery];
  const std::optional<Meta>& key = request.operands[kKey];
  if (positions->dtype != DType::i64 || !positions->is_contiguous() || positions->rank() != 1) {
    return Verdict::no("positions are not contiguous i64");
  }
  if (Verdict verdict = float_rows(query, "query"); !verdict) return verdict;
  if (Verdict verdict = float_rows(key, "key"); !verdict) return verdict;
  if (Verdict verdict = float_rows(request.operands[table], "cos_sin_cache"); !verdict) return verdict;
  if (query->rank() != 2 || key->rank() != 2 || request.operands[table]->rank() != 2) {
    return Verdict::no("query, key and cos_sin_cache are not all of rank 2");
  }
  if (key->dtype != query->dtype) return Verdict::no("key has another dtype than query");
  const std::int64_t rotary_dim = request.attributes.at("rotary_dim").integer();
  if (rotary_dim > kMaxRotaryDim) {
    return Verdict::no(fmt::format("rotary_dim is {}; at most {} is supported", rotary_dim, kMaxRotaryDim));
  }
  return Verdict::yes();
}

Verdict supports(const KernelRequest& request) { return supports_rotation(request, kCosSinCache); }

Verdict supports_normed(const KernelRequest& request) {
  if (Verdict verdict = supports_rotation(request, kNormCosSinCache); !verdict) return verdict;
  const DType dtype = request.operands[kQuery]->dtype;
  if (Verdict verdict = norm_weight(request.operands[kQueryWeight], dtype); !verdict) return verdict;
  return norm_weight(request.operands[kKeyWeight], dtype);
}

void check_positions(const TensorView& positions, std::int64_t limit) {
  const std::int64_t* position = positions.as<std::int64_t>();
  for (std::int64_t i = 0; i < positions.size[0]; ++i) {
    USER_CHECK(position[i] >= 0 && position[i] < limit,
               "[rotary_embedding] positions must lie in [0, {}), the rows of cos_sin_cache, but position {} is {}",
               limit, i, position[i]);
  }
}

// Heads of one of the two tensors.
RotaryTask task_of(const RotaryTask& shared, const RowRun& run, std::size_t operand, const TensorView& x) {
  RotaryTask task = shared;
  task.output = run.data[operand];
  task.output_stride = run.stride[operand];
  task.x = run.data[operand + 1];
  task.x_stride = run.stride[operand + 1];
  task.heads = x.size[1] / shared.head_size;
  task.rows = run.count;
  task.positions += run.first;
  return task;
}

RotaryTask rotation_of(const KernelCall& call, const TensorView& cache) {
  check_positions(call.operands[kPositions], cache.size[0]);
  RotaryTask shared;
  shared.head_size = call.attributes.at("head_size").integer();
  shared.rotary_dim = call.attributes.at("rotary_dim").integer();
  shared.neox = call.attributes.at("is_neox_style").boolean();
  shared.positions = call.operands[kPositions].as<std::int64_t>();
  shared.cos_sin_cache = cache.data;
  shared.cache_element = element_of(cache.dtype);
  shared.cache_stride = cache.stride[0];
  CHECK(shared.head_size > 0 && shared.rotary_dim % 2 == 0 && shared.rotary_dim <= shared.head_size &&
            shared.rotary_dim <= cache.size[1],
        "[rotary_embedding] rotary_dim {} of head_size {} with {} columns of cos_sin_cache", shared.rotary_dim,
        shared.head_size, cache.size[1]);
  return shared;
}

void run(const RowWiseKernels& kernels, const KernelCall& call) {
  const TensorView& query = call.operands[kQuery];
  const TensorView& key = call.operands[kKey];
  const RotaryTask shared = rotation_of(call, call.operands[kCosSinCache]);
  const auto function = kernels.rotary[static_cast<std::size_t>(element_of(query.dtype))];
  const std::int64_t row_bytes = 2 * (query.size[1] + key.size[1]) * dtype_info(query.dtype).block_bytes;
  const RowSpace rows({&call.results[0], &query, &call.results[1], &key});
  rows.run(call.threads, row_bytes, [&](const RowRun& run) {
    function(task_of(shared, run, 0, query));
    function(task_of(shared, run, 2, key));
  });
}

// Normalises the heads of rows into the results, where they are rotated: one token's stay in L1 in between.
void run_normed(const RowWiseKernels& kernels, const KernelCall& call) {
  const TensorView& query = call.operands[kQuery];
  const TensorView& key = call.operands[kKey];
  const RotaryTask shared = rotation_of(call, call.operands[kNormCosSinCache]);
  const auto element = static_cast<std::size_t>(element_of(query.dtype));
  const std::int64_t bytes = dtype_info(query.dtype).block_bytes;
  const auto give = [&](const RowRun& run, std::size_t operand, const TensorView& x, const TensorView& weight) {
    const auto normalise = kernels.rms_norm[element][weighting_of(weight, x.dtype)];
    NormTask norm;
    norm.weight = weight.data;
    norm.rows = x.size[1] / shared.head_size;
    norm.columns = norm.variance_columns = norm.x_stride = norm.output_stride = shared.head_size;
    norm.epsilon = static_cast<float>(call.attributes.at("epsilon").real());
    RotaryTask rotary = task_of(shared, run, operand, x);
    rotary.x = rotary.output;
    rotary.x_stride = rotary.output_stride;
    rotary.rows = 1;
    for (std::int64_t row = 0; row < run.count; ++row) {
      norm.x = run.data[operand + 1] + row * run.stride[operand + 1] * bytes;
      norm.output = run.data[operand] + row * run.stride[operand] * bytes;
      normalise(norm);
      rotary.x = rotary.output = norm.output;
      kernels.rotary[element](rotary);
      ++rotary.positions;
    }
  };
  const RowSpace rows({&call.results[0], &query, &call.results[1], &key});
  rows.run(call.threads, 2 * (query.size[1] + key.size[1]) * bytes, [&](const RowRun& run) {
    give(run, 0, query, call.operands[kQueryWeight]);
    give(run, 2, key, call.operands[kKeyWeight]);
  });
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, rotary_embedding) {
  registry.add({.op = "rotary_embedding",
                .provider = "cpu",
                .supports = weft::cpu::supports,
                .prepare = weft::cpu::prepare_row_wise<weft::cpu::run>,
                .note = weft::cpu::kRowWiseNote});
  registry.add({.op = "fused_qk_norm_rope",
                .provider = "cpu",
                .supports = weft::cpu::supports_normed,
                .prepare = weft::cpu::prepare_row_wise<weft::cpu::run_normed>,
                .note = weft::cpu::kRowWiseNote});
}
