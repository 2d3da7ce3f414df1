#pragma once

// Transposition of squares of elements, in registers. Rows of other types than these need functions interleave_low and
// interleave_high that are declared before this header.

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weft::cpu {
namespace {

// Rows of 16 bytes, and their interleaving as that of rows of bytes.
using SquareRow16 = std::uint16_t __attribute__((vector_size(16)));
using SquareRow32 = std::uint32_t __attribute__((vector_size(16)));
inline SquareRow16 interleave_low(SquareRow16 a, SquareRow16 b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
inline SquareRow16 interleave_high(SquareRow16 a, SquareRow16 b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
inline SquareRow32 interleave_low(SquareRow32 a, SquareRow32 b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
inline SquareRow32 interleave_high(SquareRow32 a, SquareRow32 b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

// Transposes the count x count elements in each 128 bits of the rows. Each round interleaves the rows of the first half
// with those of the second.
template <class Row, int count>
inline __attribute__((always_inline)) void transpose(Row (&rows)[count]) {
#pragma GCC unroll 4
  for (int round = 1; round < count; round *= 2) {
    Row next[count];
#pragma GCC unroll 8
    for (int i = 0; i < count / 2; ++i) {
      next[2 * i] = interleave_low(rows[i], rows[i + count / 2]);
      next[2 * i + 1] = interleave_high(rows[i], rows[i + count / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) rows[i] = next[i];
  }
}

// Squares of elements whose rows are 16 bytes.
template <class Element>
constexpr int kSquareOf = 16 / static_cast<int>(sizeof(Element));

// `row(i)` is the address of row i.
template <class Element, class RowOf>
inline void transpose_square_of(const RowOf& row, Element* to, std::int64_t to_stride) {
  constexpr int kRows = kSquareOf<Element>;
  std::conditional_t<sizeof(Element) == 2, SquareRow16, SquareRow32> rows[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) std::memcpy(&rows[i], row(i), sizeof(rows[i]));
  transpose(rows);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) std::memcpy(to + i * to_stride, &rows[i], sizeof(rows[i]));
}
template <class Element>
inline void transpose_square(const Element* from, std::int64_t from_stride, Element* to, std::int64_t to_stride) {
  transpose_square_of([=](int i) { return from + i * from_stride; }, to, to_stride);
}

}  // namespace
}  // namespace weft::cpu
