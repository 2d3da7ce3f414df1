#pragma once

// A weight [columns, depth] for the linear family and its packings, also one of a stack [count, columns, depth], and
// the parallel loop over its panels.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/cpu/lib/panel.h"
#include "kernels/kernel.h"
#include "parallel/thread_pool.h"
#include "tensor/dim.h"
#include "tensor/dtype.h"
#include "tensor/meta.h"
#include "tensor/tensor_view.h"

namespace weft::cpu {

// The panel kind of a weight's dtype; nullopt if the family has no code for it.
std::optional<PanelKind> panel_kind(DType dtype);
// The packing of weights of this dtype: f32x32, q4x32, q6kx32; "" if their panels are only made during a call.
std::string_view packing_name(DType dtype);
// The names of all packings, each once.
std::vector<std::string_view> packing_names();
// Whether the family supports this weight, or stack of weights: of known extents, plain or in panels.
Verdict weight_verdict(const Meta& weight);

// The extents of a weight, which is a stack of one, or of a stack.
struct StackShape {
  std::int64_t count, columns, depth;
};
StackShape stack_shape(const Meta& weight);

struct PanelWeight {
  PanelKind kind;
  DType dtype;
  std::int64_t columns;
  std::int64_t depth;
  const std::byte* data;
  bool packed;
};
PanelWeight panel_weight(const TensorView& weight);
// Weight `index` of a stack.
PanelWeight panel_weight(const TensorView& stack, std::int64_t index);

// Writes panel `index` from plain rows. `row` returns the address of a row (a column of the panel).
using RowAddress = std::function<const std::byte*(std::int64_t)>;
void pack_panel(DType dtype, std::int64_t columns, std::int64_t depth, const RowAddress& row, std::int64_t index,
                std::byte* to);

// The inverse for a part of one row: the values of elements [first_k, first_k + count) of row `row` of a packed weight.
// For block types first_k is a multiple of 32 and count is 32.
void read_row(const PanelWeight& weight, std::int64_t row, std::int64_t first_k, std::int64_t count, float* values);

// Rows [first, first + count) of the activations.
struct RowBlock {
  std::int64_t first;
  std::int64_t count;
};

// Bytes of scratch in which panels of a plain weight are packed during a call, one slot per chunk; 0 for a packed
// weight.
Dim panel_scratch_bytes(const Meta& weight, int threads);
// Packs a plain weight's panel into `slot`.
const std::byte* packed_panel(const PanelWeight& weight, std::int64_t index, std::byte* slot);

// Calls body(panel, index, rows) for each panel and each block of at most `row_limit` rows. Each call is a chunk.
template <class Body>
void for_each_panel(const PanelWeight& weight, std::int64_t rows, std::int64_t row_limit,
                    std::span<std::byte> panel_scratch, ThreadPool& threads, const Body& body) {
  const std::int64_t panels = panel_count(weight.columns);
  const std::int64_t bytes = panel_bytes(weight.kind, weight.depth);
  const std::int64_t row_blocks = (rows + row_limit - 1) / row_limit;
  const auto block = [&](std::int64_t i) { return RowBlock{i * row_limit, std::min(row_limit, rows - i * row_limit)}; };
  if (rows == 0 || panels == 0) return;
  if (!weight.packed) {
    const std::int64_t slots =
        std::min(panels, static_cast<std::int64_t>(panel_scratch.size()) / std::max<std::int64_t>(bytes, 1));
    threads.run(slots, [&](std::int64_t slot, int) {
      for (std::int64_t p = panels * slot / slots; p < panels * (slot + 1) / slots; ++p) {
        const std::byte* panel = packed_panel(weight, p, panel_scratch.data() + slot * bytes);
        for (std::int64_t i = 0; i < row_blocks; ++i) body(panel, p, block(i));
      }
    });
    return;
  }
  threads.run(panels * row_blocks, [&](std::int64_t chunk, int) {
    const std::int64_t p = chunk % panels;
    body(weight.data + p * bytes, p, block(chunk / panels));
  });
}

}  // namespace weft::cpu
