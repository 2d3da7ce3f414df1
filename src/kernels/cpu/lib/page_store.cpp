#include "kernels/cpu/lib/page_store.h"

#include "base/error.h"
#include "tensor/kv_pages.h"

namespace weft::cpu {

Verdict supports_page_store(const KernelRequest& request, DType dtype, std::size_t value, std::size_t kv,
                            std::size_t slots) {
  if (Verdict verdict = supports_pages(request.operands[kv]->kv); !verdict) return verdict;
  if (const std::optional<Meta>& values = request.operands[value]) {
    if (Verdict verdict = float_rows(values, "value"); !verdict) return verdict;
    if (values->rank() != 3) return Verdict::no("value is not [tokens, heads, head_dim]");
    if (values->dtype != dtype) return Verdict::no("value has another dtype than key");
  }
  const Meta& places = *request.operands[slots];
  if (places.dtype != DType::i64 || !places.is_contiguous()) return Verdict::no("slots are not contiguous i64");
  return Verdict::yes();
}

PageStore::PageStore(const AttentionKernels& kernels, const KernelCall& call, DType dtype, std::size_t value,
                     std::size_t kv, std::size_t slots, std::size_t pages)
    : kv_(call.operands[kv].meta->kv),
      value_(call.operands[value]),
      dtype_(dtype),
      element_bytes_(dtype_info(dtype).block_bytes),
      pages_(call.results[pages].data),
      slots_(call.operands[slots].as<std::int64_t>()) {
  store_ = kernels.store_kv[page_element_of(kv_.dtype)];
  const std::int64_t limit = call.results[pages].size[0] * kv_.block;
  for (std::int64_t token = 0; token < call.operands[slots].size[0]; ++token) {
    USER_CHECK(slots_[token] < limit, "[kv_cache_update] slots must be below {}, but slot {} is {}", limit, token,
               slots_[token]);
  }
}

void PageStore::put(std::int64_t token, const std::byte* key, std::int64_t key_stride) const {
  const std::int64_t slot = slots_[token];
  if (slot < 0) return;
  const std::int64_t page = slot / kv_.block, place = slot % kv_.block;
  for (std::int64_t head = 0; head < kv_.heads; ++head) {
    const std::int64_t page_key = kv_key_offset(kv_, page, head) + kv_key_element(kv_, place, 0);
    KvStoreTask task{.key = key + head * key_stride * element_bytes_,
                     .element = element_of(dtype_),
                     .page_key = pages_ + bytes_of(kv_.dtype, page_key),
                     .block = kv_.block,
                     .head_dim = kv_.head_dim};
    if (!kv_.keys_are_values) {
      const std::int64_t page_value = kv_value_offset(kv_, page, head) + kv_value_element(kv_, place, 0);
      task.value = value_.data + (token * value_.stride[0] + head * value_.stride[1]) * element_bytes_;
      task.page_value = pages_ + bytes_of(kv_.dtype, page_value);
    }
    store_(task);
  }
}

}  // namespace weft::cpu
