// fused_rope_kv_cache_update, and fused_qk_norm_rope_kv_cache_update with the normalization of each head before it.
// Parallel over chunks of tokens. The keys of a chunk are rotated into the thread's scratch, where a page's worth of
// them stays in the caches, and are then stored in the pages. Nothing else reads them from the scratch.

#include <algorithm>

#include "kernels/cpu/lib/head_rotation.h"
#include "kernels/cpu/lib/page_store.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/registry.h"
#include "kernels/row_chunks.h"

namespace weft::cpu {
namespace {

struct Operands {
  RotationOperands rotation;
  std::size_t value;
  std::size_t kv;
  std::size_t slots;
};
constexpr Operands kPlain{.rotation = {.cos_sin_cache = 4}, .value = 3, .kv = 5, .slots = 6};
constexpr Operands kNormed{
    .rotation = {.cos_sin_cache = 6, .query_weight = 4, .key_weight = 5}, .value = 3, .kv = 7, .slots = 8};

Verdict supports(const Operands& operands, const KernelRequest& request) {
  if (Verdict verdict = supports_rotation(request, operands.rotation); !verdict) return verdict;
  const DType dtype = request.operands[kRotationKey]->dtype;
  return supports_page_store(request, dtype, operands.value, operands.kv, operands.slots);
}

// Tokens of a chunk. The slots of one page, whose columns of K are adjacent, then mostly belong to one thread. A chunk
// has more than one token because loads right after the scattered stores of K stall on them (measured: up to a fifth of
// the time).
constexpr std::int64_t kChunkTokens = 16;

std::int64_t scratch_of_thread(const KvLayout& kv, DType dtype) {
  return whole_cache_lines(kChunkTokens * kv.heads * kv.head_dim * dtype_info(dtype).block_bytes);
}

void run(const Operands& operands, const RowWiseKernels& row_wise, const AttentionKernels& attention,
         const KernelCall& call) {
  const HeadRotation rotation(row_wise, call, operands.rotation);
  const DType dtype = call.operands[kRotationKey].dtype;
  const PageStore pages(attention, call, dtype, operands.value, operands.kv, operands.slots, 1);
  const TensorView& query = call.operands[kRotationQuery];
  const TensorView& key = call.operands[kRotationKey];
  const TensorView& turned = call.results[0];
  const KvLayout& kv = call.operands[operands.kv].meta->kv;
  const std::int64_t tokens = query.size[0], bytes = dtype_info(query.dtype).block_bytes;
  const std::int64_t chunks = (tokens + kChunkTokens - 1) / kChunkTokens, width = key.size[1];
  const auto run_chunk = [&](std::int64_t chunk, int thread) {
    const std::int64_t first = chunk * kChunkTokens, count = std::min(tokens - first, kChunkTokens);
    std::byte* keys = call.scratch.data() + thread * scratch_of_thread(kv, query.dtype);
    rotation.run(first, count,
                 {query.data + first * query.stride[0] * bytes, query.stride[0],
                  turned.data + first * turned.stride[0] * bytes, turned.stride[0]},
                 {key.data + first * key.stride[0] * bytes, key.stride[0], keys, width});
    for (std::int64_t row = 0; row < count; ++row) pages.put(first + row, keys + row * width * bytes, kv.head_dim);
  };
  if (chunks == 1 || 2 * tokens * rotation.columns() * bytes <= kSerialBytes) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) run_chunk(chunk, 0);
  } else {
    call.threads.run(chunks, run_chunk);
  }
}

Kernel kernel_of(const char* op, const Operands& operands) {
  const auto prepare = [&operands](Kernel& kernel, const DeviceDescription& device) {
    kernel.scratch_bytes = [&operands, threads = device.threads](const KernelRequest& request) {
      return Dim(threads * scratch_of_thread(request.operands[operands.kv]->kv, request.operands[kRotationKey]->dtype));
    };
    const RowWiseKernels* row_wise =
        table_for(device, row_wise_kernels_baseline, row_wise_kernels_avx2, row_wise_kernels_avx512);
    const AttentionKernels& attention = attention_kernels_for(device.features);
    kernel.run = [&operands, row_wise, &attention](const KernelCall& call) {
      run(operands, *row_wise, attention, call);
    };
  };
  return {.op = op,
          .provider = "cpu",
          .supports = [&operands](const KernelRequest& request) { return supports(operands, request); },
          .yields = yields_rotation,
          .prepare = prepare,
          .writes = {static_cast<int>(operands.kv)},
          .note = kRowWiseNote};
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, fused_rope_kv_cache_update) {
  using namespace weft::cpu;
  registry.add(kernel_of("fused_rope_kv_cache_update", kPlain));
  registry.add(kernel_of("fused_qk_norm_rope_kv_cache_update", kNormed));
}
