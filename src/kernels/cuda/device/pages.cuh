#pragma once

// Offsets of K and V in KV pages (tensor/tensor_view.h has the layout).

#include "kernels/cuda/device/memory.cuh"

namespace weft::cuda {

// A token's page, and its index in the page.
struct PageToken {
  std::uint32_t page, token;
};
WEFT_DEVICE PageToken token_of_slot(const PagesPlace& pages, std::uint32_t slot) {
  const std::uint32_t page = quotient(slot, pages.block);
  return {page, slot - page * pages.block.divisor};
}

// Column 0 of the token's K of a KV head. The stride of columns is `block` elements.
WEFT_DEVICE std::uint64_t key_place(const PagesPlace& pages, const PageToken& at, std::uint32_t head) {
  const std::uint64_t of_head = product(pages.block.divisor, pages.head_dim);
  return (product(at.page, pages.heads) + head) * 2 * of_head + at.token;
}
// Column 0 of its V. Columns are contiguous.
WEFT_DEVICE std::uint64_t value_place(const PagesPlace& pages, const PageToken& at, std::uint32_t head) {
  const std::uint64_t of_head = product(pages.block.divisor, pages.head_dim);
  return ((product(at.page, pages.heads) + head) * 2 + 1) * of_head + product(at.token, pages.head_dim);
}

}  // namespace weft::cuda
