#pragma once

// A kernel's view of a tensor: an address, and sizes and strides as plain numbers, without ownership.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/meta.h"

namespace weft {

struct TensorView {
  std::byte* data = nullptr;  // null for an absent optional tensor; a Batch* for a batch
  DType dtype = DType::f32;
  std::uint8_t rank = 0;
  MetaKind kind = MetaKind::tensor;
  std::int64_t size[kMaxRank] = {};
  std::int64_t stride[kMaxRank] = {};  // in elements; row-major also for block types
  const Meta* meta = nullptr;          // packing and KV layout. May have symbols; the sizes are those above

  bool present() const { return data != nullptr; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= size[i];
    return count;
  }
};

// Element i of a contiguous i32 or i64 view.
inline std::int64_t index_at(const TensorView& indices, std::int64_t i) {
  return indices.dtype == DType::i64 ? indices.as<const std::int64_t>()[i] : indices.as<const std::int32_t>()[i];
}

// What attention needs to know about a step, the value of a graph's `batch` input. All arrays are int32 and owned by
// the caller during the step. Sequence i has the query rows [query_starts[i], query_starts[i + 1]). They are the last
// of its lengths[i] tokens, whose KV pages are block_table[i * max_blocks ...].
struct Batch {
  std::int32_t sequences = 0;
  const std::int32_t* query_starts = nullptr;  // [sequences + 1]
  const std::int32_t* lengths = nullptr;       // [sequences]: tokens in the cache, including this step's
  const std::int32_t* block_table = nullptr;   // [sequences, max_blocks]
  std::int32_t max_blocks = 0;
};

// The layout of KV pages, the same for every kernel. A page contains `block` tokens of one layer:
//   for each of the `heads`:  K as [head_dim][block] (codes: see kv_pages.h), then V as [block][head_dim].
// If the keys are the values, there is no V. A page of states has [state_rows][head_dim] for each head. Slot s of
// kv_cache_update is token s % block of page s / block. Pages are zeroed at first.
inline std::int64_t kv_head_elements(const KvLayout& kv) {
  if (kv.state_rows != 0) return kv.state_rows * kv.head_dim;
  return (kv.keys_are_values ? 1 : 2) * kv.block * kv.head_dim;
}
inline std::int64_t kv_token_elements(const KvLayout& kv) { return kv.heads * kv_head_elements(kv) / kv.block; }
inline std::int64_t kv_page_elements(const KvLayout& kv) { return kv.heads * kv_head_elements(kv); }
inline std::int64_t kv_key_offset(const KvLayout& kv, std::int64_t page, std::int64_t head) {
  return page * kv_page_elements(kv) + head * kv_head_elements(kv);
}
inline std::int64_t kv_value_offset(const KvLayout& kv, std::int64_t page, std::int64_t head) {
  return kv_key_offset(kv, page, head) + (kv.keys_are_values ? 0 : kv.block * kv.head_dim);
}

}  // namespace weft
