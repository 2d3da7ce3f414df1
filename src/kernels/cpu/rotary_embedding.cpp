// rotary_embedding; NeoX halves and GPT-J pairs, also of a part of the head. Parallel over tokens. Query and key are
// read where they lie, as columns of one product; the results are packed rows, so nothing is written over.

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

enum Operand : std::size_t { kPositions, kQuery, kKey, kCosSinCache };

Verdict supports(const KernelRequest& request) {
  const std::optional<Meta>& positions = request.operands[kPositions];
  const std::optional<Meta>& query = request.operands[kQuery];
  const std::optional<Meta>& key = request.operands[kKey];
  if (positions->dtype != DType::i64 || !positions->is_contiguous() || positions->rank() != 1) {
    return Verdict::no("positions are not contiguous i64");
  }
  if (Verdict verdict = float_rows(query, "query"); !verdict) return verdict;
  if (Verdict verdict = float_rows(key, "key"); !verdict) return verdict;
  if (Verdict verdict = float_rows(request.operands[kCosSinCache], "cos_sin_cache"); !verdict) return verdict;
  if (query->rank() != 2 || key->rank() != 2 || request.operands[kCosSinCache]->rank() != 2) {
    return Verdict::no("query, key and cos_sin_cache are not all of rank 2");
  }
  if (key->dtype != query->dtype) return Verdict::no("key has another dtype than query");
  const std::int64_t rotary_dim = request.attributes.at("rotary_dim").integer();
  if (rotary_dim > kMaxRotaryDim) {
    return Verdict::no(fmt::format("rotary_dim is {}; at most {} is supported", rotary_dim, kMaxRotaryDim));
  }
  return Verdict::yes();
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

void run(const RowWiseKernels& kernels, const KernelCall& call) {
  const TensorView& query = call.operands[kQuery];
  const TensorView& key = call.operands[kKey];
  const TensorView& cache = call.operands[kCosSinCache];
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
  const auto function = kernels.rotary[static_cast<std::size_t>(element_of(query.dtype))];
  const std::int64_t row_bytes = 2 * (query.size[1] + key.size[1]) * dtype_info(query.dtype).block_bytes;
  const RowSpace rows({&call.results[0], &query, &call.results[1], &key});
  rows.run(call.threads, row_bytes, [&](const RowRun& run) {
    function(task_of(shared, run, 0, query));
    function(task_of(shared, run, 2, key));
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
}
