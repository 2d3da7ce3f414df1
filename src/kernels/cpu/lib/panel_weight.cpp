#include "kernels/cpu/lib/panel_weight.h"

#include <cstring>

#include <fmt/core.h>

#include "base/error.h"

namespace weft::cpu {
namespace {

// Codes are copied in words of 4 bytes: word w of a column's group is w * 128 bytes after the first.
std::uint32_t load_word(const std::byte* from) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}
void store_word(std::byte* to, std::uint32_t word) { std::memcpy(to, &word, sizeof(word)); }

constexpr std::int64_t kWordStride = kPanelColumns * 4;
constexpr std::uint32_t kLow = 0x0f0f0f0f;
constexpr std::uint32_t kHigh = 0xf0f0f0f0;
constexpr std::uint32_t kSigns = 0x80808080;

// A block of q8_0 holds 32 signed codes in order.
void pack_bytes(const std::byte* block, std::byte* codes) {
  for (int w = 0; w < 8; ++w) store_word(codes + w * kWordStride, load_word(block + w * 4) ^ kSigns);
}
void unpack_bytes(const std::byte* codes, std::byte* block) {
  for (int w = 0; w < 8; ++w) store_word(block + w * 4, load_word(codes + w * kWordStride) ^ kSigns);
}

// Byte k of a 4-bit block has element k in its low half and element k + 16 in its high half. Word j of a record has
// elements 8j to 8j + 3 in the low halves and the next four in the high halves. So words a and a + 2 of a record are
// packed from the same two words of the block.
void pack_nibbles(const std::byte* block, std::byte* codes) {
  for (int a = 0; a < 2; ++a) {
    const std::uint32_t first = load_word(block + a * 8), second = load_word(block + a * 8 + 4);
    store_word(codes + a * kWordStride, (first & kLow) | (second & kLow) << 4);
    store_word(codes + (a + 2) * kWordStride, (first >> 4 & kLow) | (second & kHigh));
  }
}
void unpack_nibbles(const std::byte* codes, std::byte* block) {
  for (int a = 0; a < 2; ++a) {
    const std::uint32_t early = load_word(codes + a * kWordStride), late = load_word(codes + (a + 2) * kWordStride);
    store_word(block + a * 8, (early & kLow) | (late & kLow) << 4);
    store_word(block + a * 8 + 4, (early >> 4 & kLow) | (late & kHigh));
  }
}

// In a block the minimum follows the scale. In a record each has an array of its own.
int scale_count(PanelKind kind) { return has_minimums(kind) ? 2 : 1; }

void pack_block(PanelKind kind, const std::byte* block, int column, std::byte* record) {
  for (int i = 0; i < scale_count(kind); ++i) std::memcpy(record + (i * kPanelColumns + column) * 2, block + i * 2, 2);
  const auto pack_codes = code_bits(kind) == 8 ? pack_bytes : pack_nibbles;
  pack_codes(block + scale_count(kind) * 2, record + record_head_bytes(kind) + column * 4);
}

void unpack_block(PanelKind kind, const std::byte* record, int column, std::byte* block) {
  for (int i = 0; i < scale_count(kind); ++i) std::memcpy(block + i * 2, record + (i * kPanelColumns + column) * 2, 2);
  const auto unpack_codes = code_bits(kind) == 8 ? unpack_bytes : unpack_nibbles;
  unpack_codes(record + record_head_bytes(kind) + column * 4, block + scale_count(kind) * 2);
}

// The index of element `k` of a column in a panel of floats.
std::int64_t float_place(PanelKind kind, int column, std::int64_t k) {
  if (kind == PanelKind::bf16) return (k / 2 * kPanelColumns + column) * 2 + k % 2;
  return k * kPanelColumns + column;
}

template <class Element>
void pack_floats(PanelKind kind, const std::byte* row, std::int64_t depth, int column, std::byte* panel) {
  for (std::int64_t k = 0; k < depth; ++k)
    std::memcpy(panel + float_place(kind, column, k) * sizeof(Element), row + k * sizeof(Element), sizeof(Element));
}

template <class Element>
void unpack_floats(PanelKind kind, const std::byte* panel, int column, std::int64_t first_k, std::int64_t count,
                   std::byte* plain) {
  for (std::int64_t k = 0; k < count; ++k)
    std::memcpy(plain + k * sizeof(Element), panel + float_place(kind, column, first_k + k) * sizeof(Element),
                sizeof(Element));
}

struct PanelFormat {
  PanelKind kind;
  DType dtype;
  std::string_view packing;
};

constexpr PanelFormat kPanelFormats[] = {
    {PanelKind::f32, DType::f32, "f32x32"},    {PanelKind::f16, DType::f16, "f16x32"},
    {PanelKind::bf16, DType::bf16, "bf16x32"}, {PanelKind::q4_0, DType::q4_0, "q4x32"},
    {PanelKind::q4_1, DType::q4_1, "q4x32"},   {PanelKind::q8_0, DType::q8_0, "q8x32"},
};

const PanelFormat& panel_format(PanelKind kind) {
  const auto* found = std::ranges::find(kPanelFormats, kind, &PanelFormat::kind);
  CHECK(found != std::end(kPanelFormats), "[linear] panels of kind {} have no row", static_cast<int>(kind));
  return *found;
}

}  // namespace

DType dtype_of(PanelKind kind) { return panel_format(kind).dtype; }
std::string_view packing_name(PanelKind kind) { return panel_format(kind).packing; }

std::optional<PanelKind> panel_kind(DType dtype) {
  for (const PanelFormat& format : kPanelFormats)
    if (format.dtype == dtype) return format.kind;
  return std::nullopt;
}

Verdict weight_verdict(const Meta& weight) {
  if (!weight.is_tensor() || weight.rank() != 2) return Verdict::no("weight is not a matrix");
  const std::optional<PanelKind> kind = panel_kind(weight.dtype);
  if (!kind) return Verdict::no(fmt::format("no panels of {}", dtype_text(weight.dtype)));
  if (!weight.shape[0].is_number() || !weight.shape[1].is_number())
    return Verdict::no(fmt::format("weight has a symbolic extent: {}", weight.text()));
  if (!weight.is_contiguous()) return Verdict::no("weight is not contiguous");
  if (is_group_kind(*kind) && weight.shape[1].number() % kGroupDepth != 0)
    return Verdict::no(fmt::format("depth {} is not whole groups of {}", weight.shape[1].number(), kGroupDepth));
  if (!weight.packed.empty() && weight.packed != packing_name(*kind))
    return Verdict::no(fmt::format("packing {} is not {}", weight.packed, packing_name(*kind)));
  return Verdict::yes();
}

PanelWeight panel_weight(const TensorView& weight) {
  const std::optional<PanelKind> kind = panel_kind(weight.dtype);
  CHECK(kind && weight.rank == 2, "[linear] chosen for a weight without panels: {}", dtype_text(weight.dtype));
  const bool packed = weight.meta != nullptr && !weight.meta->packed.empty();
  return {*kind, weight.size[0], weight.size[1], weight.data, packed};
}

void pack_panel(PanelKind kind, std::int64_t columns, std::int64_t depth, const RowAddress& row, std::int64_t index,
                std::byte* to) {
  const std::int64_t first = index * kPanelColumns;
  const int count = static_cast<int>(std::min<std::int64_t>(kPanelColumns, columns - first));
  if (count < kPanelColumns || depth % 2 != 0) std::memset(to, 0, static_cast<std::size_t>(panel_bytes(kind, depth)));
  const std::int64_t block_bytes = dtype_info(dtype_of(kind)).block_bytes;
  for (int column = 0; column < count; ++column) {
    const std::byte* from = row(first + column);
    if (is_group_kind(kind))
      for (std::int64_t g = 0; g < depth / kGroupDepth; ++g)
        pack_block(kind, from + g * block_bytes, column, to + g * record_bytes(kind));
    else if (kind == PanelKind::f32)
      pack_floats<float>(kind, from, depth, column, to);
    else
      pack_floats<std::uint16_t>(kind, from, depth, column, to);
  }
}

void unpack_row(const PanelWeight& weight, std::int64_t row, std::int64_t first_k, std::int64_t count,
                std::byte* plain) {
  const std::byte* panel = weight.data + row / kPanelColumns * panel_bytes(weight.kind, weight.depth);
  const int column = static_cast<int>(row % kPanelColumns);
  if (is_group_kind(weight.kind))
    unpack_block(weight.kind, panel + first_k / kGroupDepth * record_bytes(weight.kind), column, plain);
  else if (weight.kind == PanelKind::f32)
    unpack_floats<float>(weight.kind, panel, column, first_k, count, plain);
  else
    unpack_floats<std::uint16_t>(weight.kind, panel, column, first_k, count, plain);
}

Dim panel_scratch_bytes(const Meta& weight, int threads) {
  if (!weight.packed.empty()) return 0;
  const std::int64_t panels = panel_count(weight.shape[0].number());
  const std::int64_t bytes = panel_bytes(*panel_kind(weight.dtype), weight.shape[1].number());
  return Dim(std::min<std::int64_t>(panels, 2 * threads)) * Dim(bytes);
}

const std::byte* packed_panel(const PanelWeight& weight, std::int64_t index, std::byte* slot) {
  const std::int64_t row_bytes = bytes_of(dtype_of(weight.kind), weight.depth);
  pack_panel(
      weight.kind, weight.columns, weight.depth,
      [data = weight.data, row_bytes](std::int64_t row) { return data + row * row_bytes; }, index, slot);
  return slot;
}

}  // namespace weft::cpu
