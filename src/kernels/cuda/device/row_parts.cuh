#pragma once

// How a block of threads goes over a row of any length, 16 bytes a thread at a time.

#include "kernels/cuda/device/elements.cuh"

namespace weft::cuda {

// 16 bytes of a row for each thread, then the next ones: where this thread's begin, and whether it has any.
template <class T>
struct RowPart {
  std::uint64_t place;   // from the tensor's first element
  std::uint32_t column;  // of the row
  bool is_live;
};
template <class T>
WEFT_DEVICE RowPart<T> part_of_row(std::uint32_t turn, std::uint32_t columns) {
  const std::uint32_t column = (turn * kRowThreads + thread_index()) * kElementsOfLoad<T>;
  return {product(block_index(), columns) + column, column, column < columns};
}
template <class T>
WEFT_DEVICE std::uint32_t turns_of_row(std::uint32_t columns) {
  constexpr std::uint32_t kOfTurn = kRowThreads * kElementsOfLoad<T>;
  return (columns + kOfTurn - 1) / kOfTurn;
}

}  // namespace weft::cuda
