#pragma once

// Stores keys and values in the KV pages that a call returns.

#include "kernels/cpu/lib/attention_variant.h"
#include "kernels/cpu/lib/rows.h"

namespace weft::cpu {

// Whether the operands are supported: value, which is [tokens, heads, head_dim] or absent, pages and slots, by their
// operand indices. `dtype` is the key's.
Verdict supports_page_store(const KernelRequest& request, DType dtype, std::size_t value, std::size_t kv,
                            std::size_t slots);

class PageStore {
 public:
  // The pages are result `pages`. UserError if a slot is outside of them.
  // `dtype` is the key's.
  PageStore(const AttentionKernels& kernels, const KernelCall& call, DType dtype, std::size_t value, std::size_t kv,
            std::size_t slots, std::size_t pages);

  // Stores the token's value, if there are values, and its key, whose heads are `key_stride` elements apart. Does
  // nothing if its slot is negative. Different threads may store tokens of different slots.
  void put(std::int64_t token, const std::byte* key, std::int64_t key_stride) const;

 private:
  void (*store_)(const KvStoreTask&);
  const KvLayout& kv_;
  const TensorView& value_;  // absent if the keys are the values
  DType dtype_;
  std::int64_t element_bytes_;
  std::byte* pages_;
  const std::int64_t* slots_;
};

}  // namespace weft::cpu
