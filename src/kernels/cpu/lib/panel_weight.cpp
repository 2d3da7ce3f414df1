#include "kernels/cpu/lib/panel_weight.h"

#include <cstring>

#include <fmt/core.h>

#include "base/error.h"
#include "base/sort.h"
#include "kernels/cpu/lib/block_panel.h"
#include "kernels/cpu/lib/squares.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"

namespace weft::cpu {
namespace {

// The index of element `k` of a column in a panel of floats.
std::int64_t float_place(PanelKind kind, int column, std::int64_t k) {
  if (kind == PanelKind::bf16) return (k / 2 * kPanelColumns + column) * 2 + k % 2;
  return k * kPanelColumns + column;
}

// Writes rows [extent] of words of 4 bytes, or of 2, as columns [extent][32]: squares of them, and then what is left
// over. A cache line of a row is read at once, because the lines of all rows may fall into one set of the cache.
template <class Element>
void pack_elements(const std::byte* const* rows, int count, std::int64_t extent, std::byte* panel) {
  constexpr int kSide = kSquareOf<Element>, kLine = 4 * kSide;
  const auto row_of = [&](int column) { return reinterpret_cast<const Element*>(rows[column]); };
  auto* to = reinterpret_cast<Element*>(panel);
  const std::int64_t whole_lines = extent / kLine * kLine;
  const int whole_columns = count / kSide * kSide;
  for (std::int64_t line = 0; line < whole_lines; line += kLine)
    for (int column = 0; column < whole_columns; column += kSide)
      for (std::int64_t k = line; k < line + kLine; k += kSide)
        transpose_square_of([&](int i) { return row_of(column + i) + k; }, to + k * kPanelColumns + column,
                            kPanelColumns);
  for (int column = 0; column < count; ++column)
    for (std::int64_t k = column < whole_columns ? whole_lines : 0; k < extent; ++k)
      std::memcpy(to + k * kPanelColumns + column, row_of(column) + k, sizeof(Element));
}

// A word of a panel of bf16 is a pair of k.
void pack_floats(PanelKind kind, const std::byte* const* rows, int count, std::int64_t depth, std::byte* panel) {
  if (kind == PanelKind::f32) return pack_elements<std::uint32_t>(rows, count, depth, panel);
  if (kind == PanelKind::f16) return pack_elements<std::uint16_t>(rows, count, depth, panel);
  pack_elements<std::uint32_t>(rows, count, depth / 2, panel);
  if (depth % 2 == 0) return;
  for (int column = 0; column < count; ++column)
    std::memcpy(panel + 2 * float_place(kind, column, depth - 1), rows[column] + 2 * (depth - 1), 2);
}

struct PanelFormat {
  DType dtype;
  PanelKind kind;
  std::string_view packing;
};

// Block types that are not here have panels of kind bytes16 or bytes32 during a call.
constexpr PanelFormat kPanelFormats[] = {
    {DType::f32, PanelKind::f32, "f32x32"},
    {DType::f16, PanelKind::f16, "f16x32"},
    {DType::bf16, PanelKind::bf16, "bf16x32"},
    {DType::q4_0, PanelKind::q4_0, "q4x32"},
    {DType::q4_1, PanelKind::q4_1, "q4x32"},
    {DType::q8_0, PanelKind::q8_0, "q8x32"},
    {DType::q5_0, PanelKind::q5_0, "q5x32"},
    {DType::q5_1, PanelKind::q5_1, "q5x32"},
    {DType::iq4_nl, PanelKind::iq4_nl, "iq4x32"},
    {DType::mxfp4, PanelKind::mxfp4, "mx4x32"},
    {DType::q2_k, PanelKind::q2_k, "q2kx32"},
    {DType::q3_k, PanelKind::q3_k, "q3kx32"},
    {DType::q4_k, PanelKind::q4_k, "q4kx32"},
    {DType::q5_k, PanelKind::q5_k, "q5kx32"},
    {DType::q6_k, PanelKind::q6_k, "q6kx32"},
    {DType::iq4_xs, PanelKind::iq4_xs, "iq4kx32"},
    {DType::i4g32, PanelKind::i4g32, "i4g32x32"},
    {DType::i4g64, PanelKind::i4g64, "i4g64x32"},
    {DType::i4g128, PanelKind::i4g128, "i4g128x32"},
    {DType::nf4g32, PanelKind::nf4g32, "nf4g32x32"},
    {DType::nf4g64, PanelKind::nf4g64, "nf4g64x32"},
    {DType::i8g32, PanelKind::bytes32, "i8g32x32"},
    {DType::e4m3g32, PanelKind::e4m3g32, "e4m3g32x32"},
    {DType::e4m3g128, PanelKind::e4m3g128, "e4m3g128x32"},
    {DType::e2m1g16, PanelKind::e2m1g16, "e2m1g16x32"},
};

}  // namespace

std::string_view packing_name(DType dtype) {
  const auto* found = std::ranges::find(kPanelFormats, dtype, &PanelFormat::dtype);
  return found == std::end(kPanelFormats) ? "" : found->packing;
}

std::vector<std::string_view> packing_names() {
  std::vector<std::string_view> names;
  for (const PanelFormat& format : kPanelFormats) names.push_back(format.packing);
  sort_without_repeats(names);
  return names;
}

std::optional<PanelKind> panel_kind(DType dtype) {
  const auto* found = std::ranges::find(kPanelFormats, dtype, &PanelFormat::dtype);
  if (found != std::end(kPanelFormats)) return found->kind;
  if (!is_block(dtype)) return std::nullopt;
  return block_format(dtype).group == 16 ? PanelKind::bytes16 : PanelKind::bytes32;
}

Verdict weight_verdict(const Meta& weight) {
  if (!weight.is_tensor() || weight.rank() < 2 || weight.rank() > 3)
    return Verdict::no("weight is neither a matrix nor a stack of them");
  const std::optional<PanelKind> kind = panel_kind(weight.dtype);
  if (!kind) return Verdict::no(fmt::format("no panels of {}", dtype_text(weight.dtype)));
  if (!element_count(weight.shape).is_number())
    return Verdict::no(fmt::format("weight has a symbolic extent: {}", weight.text()));
  if (!weight.is_contiguous()) return Verdict::no("weight is not contiguous");
  const std::int64_t depth = weight.shape.back().number();
  if (is_group_kind(*kind) && depth % block_panel(*kind).depth != 0)
    return Verdict::no(fmt::format("depth {} is not whole groups of {}", depth, block_panel(*kind).depth));
  if (!weight.packed.empty() && weight.packed != packing_name(weight.dtype))
    return Verdict::no(fmt::format("packing {} is not {}", weight.packed, packing_name(weight.dtype)));
  return Verdict::yes();
}

StackShape stack_shape(const Meta& weight) {
  const std::size_t last = weight.rank() - 1;
  return {last == 1 ? 1 : weight.shape[0].number(), weight.shape[last - 1].number(), weight.shape[last].number()};
}

PanelWeight panel_weight(const TensorView& weight) {
  const std::optional<PanelKind> kind = panel_kind(weight.dtype);
  CHECK(kind && weight.rank == 2, "[linear] chosen for a weight without panels: {}", dtype_text(weight.dtype));
  const bool packed = weight.meta != nullptr && !weight.meta->packed.empty();
  return {*kind, weight.dtype, weight.size[0], weight.size[1], weight.data, packed};
}

PanelWeight panel_weight(const TensorView& stack, std::int64_t index) {
  const std::optional<PanelKind> kind = panel_kind(stack.dtype);
  CHECK(kind && stack.rank == 3, "[grouped_linear] chosen for a stack without panels: {}", dtype_text(stack.dtype));
  const bool packed = stack.meta != nullptr && !stack.meta->packed.empty();
  const std::int64_t columns = stack.size[1], depth = stack.size[2];
  const std::int64_t bytes =
      packed ? panel_count(columns) * panel_bytes(*kind, depth) : bytes_of(stack.dtype, columns * depth);
  return {*kind, stack.dtype, columns, depth, stack.data + index * bytes, packed};
}

namespace {

// Requests the beginnings of rows one after another. They are read side by side, and 32 of them are more than the
// processor follows.
void fetch(const std::byte* const* rows, int count, std::int64_t bytes) {
  constexpr std::int64_t kMostBytes = 4096, kLine = 64;
  for (int row = 0; row < count; ++row)
    for (std::int64_t at = 0; at < std::min(bytes, kMostBytes); at += kLine) __builtin_prefetch(rows[row] + at);
}

}  // namespace

void pack_panel(DType dtype, std::int64_t columns, std::int64_t depth, const RowAddress& row, std::int64_t index,
                std::byte* to) {
  const PanelKind kind = *panel_kind(dtype);
  const std::int64_t first = index * kPanelColumns;
  const int count = static_cast<int>(std::min<std::int64_t>(kPanelColumns, columns - first));
  if (count < kPanelColumns || depth % 2 != 0 || has_padding(block_panel(kind)))
    std::memset(to, 0, static_cast<std::size_t>(panel_bytes(kind, depth)));
  const std::byte* rows[kPanelColumns];
  for (int column = 0; column < count; ++column) rows[column] = row(first + column);
  fetch(rows, count, bytes_of(dtype, depth));
  if (is_group_kind(kind))
    pack_blocks(kind, dtype, rows, count, depth, to);
  else
    pack_floats(kind, rows, count, depth, to);
}

void read_row(const PanelWeight& weight, std::int64_t row, std::int64_t first_k, std::int64_t count, float* values) {
  const std::byte* panel = weight.data + row / kPanelColumns * panel_bytes(weight.kind, weight.depth);
  const int column = static_cast<int>(row % kPanelColumns);
  if (is_group_kind(weight.kind))
    return read_group(weight.kind, weight.dtype, panel, column, first_k / kGroupDepth, values);
  for (std::int64_t k = 0; k < count; ++k)
    values[k] = load_float(weight.dtype, panel, float_place(weight.kind, column, first_k + k));
}

Dim panel_scratch_bytes(const Meta& weight, int threads) {
  if (!weight.packed.empty()) return 0;
  const std::int64_t panels = panel_count(weight.shape[0].number());
  const std::int64_t bytes = panel_bytes(*panel_kind(weight.dtype), weight.shape[1].number());
  return Dim(std::min<std::int64_t>(panels, 2 * threads)) * Dim(bytes);
}

const std::byte* packed_panel(const PanelWeight& weight, std::int64_t index, std::byte* slot) {
  const std::int64_t row_bytes = bytes_of(weight.dtype, weight.depth);
  pack_panel(
      weight.dtype, weight.columns, weight.depth,
      [data = weight.data, row_bytes](std::int64_t row) { return data + row * row_bytes; }, index, slot);
  return slot;
}

}  // namespace weft::cpu
