#pragma once

// The parts of a row of any length for a block of threads, 16 bytes for each thread at a time.

#include "kernels/cuda/device/elements.cuh"

namespace weft::cuda {

// Each thread has 16 bytes of a row, then the next ones in the next iteration: the offset of this thread's bytes, and
// whether they are in the row.
template <class T>
struct RowPart {
  std::uint64_t place;   // offset from the tensor's first element
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
