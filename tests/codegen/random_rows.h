#pragma once

// Random row programs, and memory for them.

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

// A program of any ops, dtypes and domains; values may become infinite and NaN. A `tame` one keeps all values within
// [-2, 2] and rounds only stored values, so that double precision is close.
RowProgram random_rows(std::mt19937& random, bool tame);

// Buffers of a program for `rows` rows: filled inputs, zeroed outputs, and known bytes after each.
class RowBuffers {
 public:
  RowBuffers(const RowProgram& program, std::int64_t rows, std::uint32_t seed);

  void run(RowFunction* function) { run(function, 0, rows_); }
  void run(RowFunction* function, std::int64_t begin, std::int64_t end);
  // Makes each output that may overlap an input do so. Returns the count of them.
  int lay_over();
  const void* const* data() const { return pointers_.data(); }
  // The bytes of a buffer, including the known bytes after it.
  std::span<std::byte> memory(std::size_t buffer) { return memory_[buffer]; }
  // Whether nothing was written after the end of a buffer.
  bool is_intact() const;
  // The stored values, row after row.
  std::vector<float> stored(std::size_t store) const;

 private:
  const RowProgram& program_;
  std::int64_t rows_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<void*> pointers_;
};

// "" if all stores have the same bits, where all NaNs are equal; else the first difference.
std::string difference(const RowProgram& program, const RowBuffers& wanted, const RowBuffers& came);

}  // namespace weft
