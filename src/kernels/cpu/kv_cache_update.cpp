// kv_cache_update, over the KV pages in place. Parallel over tokens; K is scattered, one column of its page per token.

#include <algorithm>

#include "kernels/cpu/lib/page_store.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

enum Operand : std::size_t { kKey, kValue, kKv, kSlots };

constexpr std::int64_t kChunkTokens = 32;

Verdict supports(const KernelRequest& request) {
  const std::optional<Meta>& key = request.operands[kKey];
  if (Verdict verdict = float_rows(key, "key"); !verdict) return verdict;
  if (key->rank() != 3) return Verdict::no("key is not [tokens, heads, head_dim]");
  return supports_page_store(request, key->dtype, kValue, kKv, kSlots);
}

void run(const AttentionKernels& kernels, const KernelCall& call) {
  const TensorView& key = call.operands[kKey];
  const PageStore pages(kernels, call, key.dtype, kValue, kKv, kSlots, 0);
  const std::int64_t tokens = key.size[0], bytes = dtype_info(key.dtype).block_bytes;
  const auto put = [&](std::int64_t token) {
    pages.put(token, key.data + token * key.stride[0] * bytes, key.stride[1]);
  };
  if (tokens <= kChunkTokens) {
    for (std::int64_t token = 0; token < tokens; ++token) put(token);
    return;
  }
  call.threads.run((tokens + kChunkTokens - 1) / kChunkTokens, [&](std::int64_t chunk, int) {
    const std::int64_t last = std::min(tokens, (chunk + 1) * kChunkTokens);
    for (std::int64_t token = chunk * kChunkTokens; token < last; ++token) put(token);
  });
}

void prepare(Kernel& kernel, const DeviceDescription& device) {
  kernel.run = [&kernels = attention_kernels_for(device.features)](const KernelCall& call) { run(kernels, call); };
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, kv_cache_update) {
  registry.add({.op = "kv_cache_update",
                .provider = "cpu",
                .supports = weft::cpu::supports,
                .prepare = weft::cpu::prepare,
                .writes = {2},
                .note = "tokens in parallel; baseline, AVX2, AVX-512; the same bits on each"});
}
