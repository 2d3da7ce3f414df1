#pragma once

// The layout of a weight for its kernels. A packing is a function of (meta, device): it is decided once, at load, for
// eager and compiled mode alike, and is part of the weight's type (`q4_1[1536, 576] packed=q4x32`).

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/kernel.h"
#include "parallel/thread_pool.h"
#include "tensor/meta.h"
#include "tensor/tensor.h"

namespace weft {

struct Packing {
  std::string name;
  std::string provider;  // whose kernels read it
  // Whether a plain [out, in] weight of this meta, or a stack [count, out, in] of them, can be packed so on this
  // device.
  std::function<Verdict(const Meta& plain, const DeviceDescription&)> accepts;
  // Bytes of the packed form; a multiple of 64.
  std::function<std::int64_t(const Meta& plain)> bytes;
  // The number of units of work that may run in parallel: `pack` is called for every unit in [0, units).
  std::function<std::int64_t(const Meta& plain)> units;
  // Writes unit `unit` of the packed form. The source is plain row-major. Its rows may come from several tensors:
  // `row(index)` returns the address of row `index` of the (merged) weight. The rows of a stack are counted through.
  std::function<void(const Meta& plain, const std::function<const std::byte*(std::int64_t)>& row, std::byte* packed,
                     std::int64_t unit)>
      pack;
};

// Returns the address of row `index` of a plain weight, which is valid as long as this function.
using RowOfWeight = std::function<const std::byte*(std::int64_t index)>;

// Packs a plain weight whose rows are made as they are read. Each thread calls `rows_of_unit` for each unit. Otherwise
// as below.
Tensor pack_rows(const Packing& packing, const Meta& plain, const std::function<RowOfWeight()>& rows_of_unit,
                 ThreadPool& threads, const std::function<void()>& after_part = nullptr,
                 std::shared_ptr<Storage> into = nullptr);

// Packs the rows of `parts`, one after another, as one weight in this layout. The parts are plain and contiguous, of
// one dtype and width: InternalError otherwise. About 2 MB are packed at a time, on all threads. `after_part` is called
// after each part, so that a caller may release pages; the next part maps them again if it needs them. `into` has the
// number of bytes that the packing requires; without it they are allocated.
Tensor pack_weight(const Packing& packing, std::span<const Tensor> parts, ThreadPool& threads,
                   const std::function<void()>& after_part = nullptr, std::shared_ptr<Storage> into = nullptr);
// The same for a weight of this type, which may be a stack: the rows of all parts are its rows.
Tensor pack_weight(const Packing& packing, const Meta& plain, std::span<const Tensor> parts, ThreadPool& threads,
                   const std::function<void()>& after_part = nullptr, std::shared_ptr<Storage> into = nullptr);

// The operand whose layout the op's kernels choose; -1 for none. Kernels of other ops read a weight in the layout
// chosen for these: a tied embedding is packed for the head.
inline int weight_operand(const std::string& op) {
  if (op == "linear" || op == "grouped_linear" || op == "batched_linear") return 1;
  return op == "linear_int8" || op == "grouped_linear_int8" ? 2 : -1;
}

// For kernels that read operands only in their plain layout: refuses packed ones.
Verdict none_is_packed(const KernelRequest& request);

}  // namespace weft
