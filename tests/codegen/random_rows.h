#pragma once

// Row programs made at random, and memory for them.

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

// Of any ops, dtypes and domains; values may become infinite and NaN. A `tame` one keeps all values within [-2, 2] and
// rounds nothing but what it stores, so that double precision stays near.
RowProgram random_rows(std::mt19937& random, bool tame);

// Buffers of a program for `rows` rows: inputs filled, outputs zeroed, known bytes behind each.
class RowBuffers {
 public:
  RowBuffers(const RowProgram& program, std::int64_t rows, std::uint32_t seed);

  void run(RowFunction* function) { run(function, 0, rows_); }
  void run(RowFunction* function, std::int64_t begin, std::int64_t end);
  // Puts every output that may lie over an input there. How many there are.
  int lay_over();
  const void* const* data() const { return pointers_.data(); }
  // Of a buffer, with the known bytes behind it.
  std::span<std::byte> memory(std::size_t buffer) { return memory_[buffer]; }
  // Whether nothing was written behind a buffer.
  bool is_intact() const;
  // What a store wrote, row after row.
  std::vector<float> stored(std::size_t store) const;

 private:
  const RowProgram& program_;
  std::int64_t rows_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<void*> pointers_;
};

// "" when all stores hold the same bits, a NaN for a NaN; else where they first differ.
std::string difference(const RowProgram& program, const RowBuffers& wanted, const RowBuffers& came);

}  // namespace weft
