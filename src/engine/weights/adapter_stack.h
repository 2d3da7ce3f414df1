#pragma once

// A loaded stack of A or B of LoRA adapters, [choices, rows, columns], packed or not. Each choice has bytes of its own,
// so one may be written while kernels read others.

#include <cstdint>
#include <span>

#include "kernels/packing.h"

namespace weft {

struct AdapterStack {
  Tensor tensor;
  const Packing* packing = nullptr;  // null: the stack is plain
  std::int64_t choices = 0;

  // `one` is the plain matrix of the choice, [rows, columns].
  void fill(std::int64_t choice, const Tensor& one, ThreadPool& threads) const;
  // Makes it zero, so that it takes no memory.
  void clear(std::int64_t choice) const;

 private:
  std::span<std::byte> bytes_of(std::int64_t choice) const;
};

}  // namespace weft
