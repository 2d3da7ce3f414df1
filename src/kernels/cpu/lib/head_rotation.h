#pragma once

// The common part of kernels that rotate query and key, and normalize them before if the op says so. The first operands
// are positions, query and key.

#include "kernels/cpu/lib/row_wise_kernels.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/kernel.h"

namespace weft::cpu {

inline constexpr std::size_t kRotationPositions = 0;
inline constexpr std::size_t kRotationQuery = 1;
inline constexpr std::size_t kRotationKey = 2;

// The indices of the op's other operands; 0 if it has none.
struct RotationOperands {
  std::size_t cos_sin_cache = 0;
  std::size_t query_weight = 0;
  std::size_t key_weight = 0;
};

Verdict supports_rotation(const KernelRequest& request, const RotationOperands& operands);

// Kernel::yields: for these types generated code is as fast, if all elements of a head are rotated. The others would be
// joined to the rotated ones by an op of their own.
bool yields_rotation(const KernelRequest& request);

// Rows of query or key, and the output for them; strides in elements.
struct RotatedRows {
  const std::byte* x;
  std::int64_t x_stride;
  std::byte* output;
  std::int64_t output_stride;
};

class HeadRotation {
 public:
  // UserError if a position is no row of the table.
  HeadRotation(const RowWiseKernels& kernels, const KernelCall& call, const RotationOperands& operands);

  std::int64_t columns() const { return (rotary_.query.heads + rotary_.key.heads) * rotary_.head_size; }
  // Computes the rows of tokens [first, first + count).
  void run(std::int64_t first, std::int64_t count, const RotatedRows& query, const RotatedRows& key) const;

 private:
  // The normalization of one row's heads.
  struct Norm {
    void (*run)(const NormTask&) = nullptr;  // null for none
    NormTask task;
  };
  Norm norm_of(const RowWiseKernels& kernels, const KernelCall& call, std::size_t weight, std::int64_t heads) const;
  void normalize(const Norm& norm, const std::byte* x, std::byte* output, RotatedHeads& heads) const;

  RotaryTask rotary_;  // without rows
  void (*rotate_)(const RotaryTask&);
  std::int64_t element_bytes_;
  Norm query_norm_, key_norm_;
};

}  // namespace weft::cpu
