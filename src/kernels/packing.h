#pragma once

// How a weight is laid out for its kernels. A packing is a function of (meta, device): it is decided once, at load,
// for eager and compiled alike, and stands in the weight's type (`q4_1[1536, 576] packed=q4x32`).

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/thread_pool.h"
#include "kernels/kernel.h"
#include "tensor/meta.h"
#include "tensor/tensor.h"

namespace weft {

struct Packing {
  std::string name;
  std::string provider;  // whose kernels read it
  // Whether a plain [out, in] weight of this meta can be packed so on this device.
  std::function<Verdict(const Meta& plain, const DeviceDescription&)> accepts;
  // Bytes of the packed form; a multiple of 64.
  std::function<std::int64_t(const Meta& plain)> bytes;
  // Units of work that may run in parallel: `pack` is called for every unit in [0, units).
  std::function<std::int64_t(const Meta& plain)> units;
  // Writes unit `unit` of the packed form. `source` is plain row-major; rows may come from several tensors through
  // `row(index)`, which gives the address of row `index` of the (merged) weight.
  std::function<void(const Meta& plain, const std::function<const std::byte*(std::int64_t)>& row, std::byte* packed,
                     std::int64_t unit)>
      pack;
};

// The rows of `parts`, one after another, as one weight in this layout. The parts are plain and contiguous, of one
// dtype and width: InternalError otherwise. About 2 MB are packed at a time, on all threads; `after_part` is called
// after each, so that a caller may let go of pages that the next part maps again where it needs them. `into` has the
// bytes that the packing asks for; without it they are allocated.
Tensor pack_weight(const Packing& packing, std::span<const Tensor> parts, ThreadPool& threads,
                   const std::function<void()>& after_part = nullptr, std::shared_ptr<Storage> into = nullptr);

// The operand of the op whose layout is the choice of the op's kernels; -1 for none. Kernels of other ops take a weight
// as it is laid out for these: a tied embedding is packed for the head.
inline int weight_operand(const std::string& op) { return op == "linear" ? 1 : op == "linear_int8" ? 2 : -1; }

// For kernels that read operands as they are described only.
Verdict none_is_packed(const KernelRequest& request);

}  // namespace weft
