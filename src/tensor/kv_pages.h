#pragma once

// Where the elements of a token's key and value are in KV pages: tensor_view.h has the pages. K is [head_dim][block],
// but [block][head_dim] in pages of codes (f8e4m3, q8_0), like V. A block has elements of one token, so heads of q8_0
// fill whole blocks.

#include "tensor/tensor_view.h"

namespace weft {

inline bool kv_has_key_rows(const KvLayout& kv) { return is_block(kv.dtype) || dtype_info(kv.dtype).block_bytes < 2; }

// Whether pages may be of this type: one of plain elements, or q8_0 if heads fill whole blocks.
inline bool kv_type_fits(const KvLayout& kv) {
  return !is_block(kv.dtype) || (kv.dtype == DType::q8_0 && kv.head_dim % dtype_info(kv.dtype).block_elements == 0);
}

inline std::int64_t kv_page_bytes(const KvLayout& kv) { return bytes_of(kv.dtype, kv_page_elements(kv)); }

// Element i of the key of the token at `place` in its page, counted from kv_key_offset.
inline std::int64_t kv_key_element(const KvLayout& kv, std::int64_t place, std::int64_t i) {
  return kv_has_key_rows(kv) ? place * kv.head_dim + i : i * kv.block + place;
}
// The same of its value, counted from kv_value_offset.
inline std::int64_t kv_value_element(const KvLayout& kv, std::int64_t place, std::int64_t i) {
  return kv.keys_are_values ? kv_key_element(kv, place, i) : place * kv.head_dim + i;
}

}  // namespace weft
