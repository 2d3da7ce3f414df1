// kv_cache_update, over the KV pages in place. Parallel over tokens; K is scattered, one column of its page per token.

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/lib/attention_variant.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

enum Operand : std::size_t { kKey, kValue, kKv, kSlots };

constexpr std::int64_t kChunkTokens = 32;

Verdict supports(const KernelRequest& request) {
  const std::optional<Meta>& key = request.operands[kKey];
  const std::optional<Meta>& value = request.operands[kValue];
  const std::optional<Meta>& slots = request.operands[kSlots];
  if (Verdict verdict = float_rows(key, "key"); !verdict) return verdict;
  if (Verdict verdict = float_rows(value, "value"); !verdict) return verdict;
  if (Verdict verdict = supports_pages(request.operands[kKv]->kv); !verdict) return verdict;
  if (key->rank() != 3 || value->rank() != 3) return Verdict::no("key and value are not [tokens, heads, head_dim]");
  if (key->dtype != value->dtype) return Verdict::no("value has another dtype than key");
  if (slots->dtype != DType::i64 || !slots->is_contiguous()) return Verdict::no("slots are not contiguous i64");
  return Verdict::yes();
}

void run(const AttentionKernels& kernels, const KernelCall& call) {
  const TensorView& key = call.operands[kKey];
  const TensorView& value = call.operands[kValue];
  const TensorView& pages = call.results[0];
  const KvLayout& kv = call.operands[kKv].meta->kv;
  const std::int64_t* slots = call.operands[kSlots].as<std::int64_t>();
  const std::int64_t tokens = key.size[0];
  const std::int64_t limit = pages.size[0] * kv.block;
  for (std::int64_t token = 0; token < tokens; ++token) {
    USER_CHECK(slots[token] < limit, "[kv_cache_update] slots must lie below {}, but slot {} is {}", limit, token,
               slots[token]);
  }
  const auto store = kernels.store_kv[static_cast<std::size_t>(element_of(kv.dtype))];
  const std::int64_t bytes = dtype_info(key.dtype).block_bytes;
  const std::int64_t page_bytes = dtype_info(kv.dtype).block_bytes;
  const auto store_token = [&](std::int64_t token) {
    const std::int64_t slot = slots[token];
    if (slot < 0) return;
    for (std::int64_t head = 0; head < kv.heads; ++head) {
      const std::int64_t page_key = kv_key_offset(kv, slot / kv.block, head) + slot % kv.block;
      const std::int64_t page_value = kv_value_offset(kv, slot / kv.block, head) + slot % kv.block * kv.head_dim;
      store({.key = key.data + (token * key.stride[0] + head * key.stride[1]) * bytes,
             .value = value.data + (token * value.stride[0] + head * value.stride[1]) * bytes,
             .element = element_of(key.dtype),
             .page_key = pages.data + page_key * page_bytes,
             .page_value = pages.data + page_value * page_bytes,
             .block = kv.block,
             .head_dim = kv.head_dim});
    }
  };
  if (tokens <= kChunkTokens) {
    for (std::int64_t token = 0; token < tokens; ++token) store_token(token);
    return;
  }
  call.threads.run((tokens + kChunkTokens - 1) / kChunkTokens, [&](std::int64_t chunk, int) {
    const std::int64_t last = std::min(tokens, (chunk + 1) * kChunkTokens);
    for (std::int64_t token = chunk * kChunkTokens; token < last; ++token) store_token(token);
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
