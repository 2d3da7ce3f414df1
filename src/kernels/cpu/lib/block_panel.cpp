#include "kernels/cpu/lib/block_panel.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "tensor/bfloat16.h"
#include "tensor/block_format.h"
#include "tensor/float16.h"
#include "tensor/float8.h"
#include "tensor/group_blocks.h"

namespace weft::cpu {
namespace {

// Codes are moved in words of 4 bytes, the codes of a step: word w of a column is w * 128 bytes after the first.
constexpr std::int64_t kWordStride = kPanelColumns * 4;
constexpr int kSteps = kGroupDepth / 4;

std::uint32_t load_word(const void* from) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}
void store_word(void* to, std::uint32_t word) { std::memcpy(to, &word, sizeof(word)); }

constexpr std::uint32_t every_byte(std::uint32_t byte) { return byte * 0x01010101u; }

// Bits [first, first + bits) of all codes, to and from a plane.
template <int first, int bits>
struct Plane {
  static constexpr int steps_of_word = 8 / bits;
  static constexpr std::uint32_t mask = every_byte((1u << bits) - 1);

  static void pack(const std::uint8_t* codes, std::byte* plane) {
#pragma GCC unroll 8
    for (int word = 0; word < kSteps / steps_of_word; ++word) {
      std::uint32_t all = 0;
#pragma GCC unroll 8
      for (int i = 0; i < steps_of_word; ++i)
        all |= (load_word(codes + 4 * (word * steps_of_word + i)) >> first & mask) << i * bits;
      store_word(plane + word * kWordStride, all);
    }
  }
  static void read(const std::byte* plane, std::uint8_t* codes) {
    for (int step = 0; step < kSteps; ++step) {
      const std::uint32_t word = load_word(plane + step / steps_of_word * kWordStride);
      const std::uint32_t own = (word >> step % steps_of_word * bits & mask) << first;
      store_word(codes + 4 * step, first == 0 ? own : load_word(codes + 4 * step) | own);
    }
  }
};

// The planes of codes of 3, 5 and 6 bits: the high one comes after the low one, which is this long.
template <int low_bits, int high_bits>
struct Planes {
  static constexpr std::int64_t low_bytes = low_bits * kPanelColumns * kGroupDepth / 8;
  static void pack(const std::uint8_t* codes, std::byte* planes) {
    Plane<0, low_bits>::pack(codes, planes);
    if constexpr (high_bits > 0) Plane<low_bits, high_bits>::pack(codes, planes + low_bytes);
  }
  static void read(const std::byte* planes, std::uint8_t* codes) {
    Plane<0, low_bits>::read(planes, codes);
    if constexpr (high_bits > 0) Plane<low_bits, high_bits>::read(planes + low_bytes, codes);
  }
};

// How the codes of 32 k of a column are written and read.
struct CodeForm {
  int bits;
  void (*pack)(const std::uint8_t* codes, std::byte* planes);
  void (*read)(const std::byte* planes, std::uint8_t* codes);
};
template <int low_bits, int high_bits>
constexpr CodeForm kForm{low_bits + high_bits, Planes<low_bits, high_bits>::pack, Planes<low_bits, high_bits>::read};
constexpr CodeForm kCodeForms[] = {kForm<2, 0>, kForm<2, 1>, kForm<4, 0>, kForm<4, 1>, kForm<4, 2>, kForm<8, 0>};

// A row of block_panel() with what follows from it.
struct Layout {
  BlockPanel block;
  CodeForm form;
  std::int64_t minimums, group_scales, group_minimums, codes;  // offsets
  std::int64_t record, group;                                  // bytes: of a record, of the codes of 32 k
  std::int64_t depth;                                          // of a record, in groups of 32 k
  std::int64_t groups;                                         // with a scale, in 32 k

  explicit Layout(PanelKind kind)
      : block(block_panel(kind)),
        form(*std::ranges::find(kCodeForms, block.code_bits, &CodeForm::bits)),
        minimums(minimum_offset(block)),
        group_scales(group_scale_offset(block)),
        group_minimums(group_minimum_offset(block)),
        codes(code_offset(block)),
        record(record_bytes(block)),
        group(group_code_bytes(block)),
        depth(block.depth / kGroupDepth),
        groups(kGroupDepth / block.group) {}
};

void store_scale(const BlockPanel& block, std::byte* array, int column, float scale) {
  std::byte* to = array + column * scale_bytes(block);
  if (block.form == ScaleForm::f32) {
    std::memcpy(to, &scale, sizeof scale);
    return;
  }
  const std::uint16_t half = block.form == ScaleForm::bf16 ? f32_to_bf16(scale) : f32_to_f16(scale);
  std::memcpy(to, &half, sizeof half);
}
float load_scale(const BlockPanel& block, const std::byte* array, int column) {
  const std::byte* from = array + column * scale_bytes(block);
  if (block.form == ScaleForm::f32) {
    float scale;
    std::memcpy(&scale, from, sizeof scale);
    return scale;
  }
  std::uint16_t half;
  std::memcpy(&half, from, sizeof half);
  return block.form == ScaleForm::bf16 ? bf16_to_f32(half) : f16_to_f32(half);
}

// A scale and zero point, of types that have both.
void store_header(const Layout& layout, const BlockParts& parts, int column, std::byte* record) {
  const GroupHeader header = group_header(parts.scale, -static_cast<int>(parts.minimums[0]));
  std::memcpy(record + column * sizeof header.scale, &header.scale, sizeof header.scale);
  record[layout.minimums + column] = static_cast<std::byte>(header.rest);
}
GroupHeader load_header(const Layout& layout, const std::byte* record, int column) {
  GroupHeader header{0, std::to_integer<std::uint8_t>(record[layout.minimums + column])};
  std::memcpy(&header.scale, record + column * sizeof header.scale, sizeof header.scale);
  return header;
}

// The scales of 32 k: those of a block's group `first` and, if there are two, the next; groups `to` and the next of the
// record.
void pack_scales(const Layout& layout, const BlockParts& parts, std::int64_t first, std::int64_t to, int column,
                 std::byte* record) {
  const BlockPanel& block = layout.block;
  if (block.form == ScaleForm::with_zero_point) return store_header(layout, parts, column, record);
  for (std::int64_t g = 0; g < layout.groups; ++g) {
    const std::int64_t from = first + g, at = (to + g) * kPanelColumns + column;
    if (block.group_scales == GroupScales::none) {
      std::byte* array = record + g * kPanelColumns * scale_bytes(block);
      store_scale(block, array, column, parts.scale * parts.scales[from]);
      if (block.minimums) store_scale(block, array + layout.minimums, column, parts.minimum * parts.minimums[from]);
      continue;
    }
    if (block.group_scales == GroupScales::e4m3) {
      record[layout.group_scales + at] = static_cast<std::byte>(f32_to_f8e4m3(parts.scales[from]));
      continue;
    }
    const int scale = static_cast<int>(parts.scales[from]);
    const int minimum = block.minimums ? static_cast<int>(parts.minimums[from]) : 0;
    if (block.group_scales == GroupScales::nibbles) {
      record[layout.group_scales + at] = static_cast<std::byte>(scale | minimum << 4);
    } else {
      record[layout.group_scales + at] = static_cast<std::byte>(scale);
      if (block.minimums) record[layout.group_minimums + at] = static_cast<std::byte>(minimum);
    }
  }
}

// q4_0, q4_1 and q8_0 are packed without unpacking them first. Their scales are copied. Byte k of a 4-bit block has
// element k in its low half and element k + 16 in its high half; so words a and a + 2 of a record are packed from the
// same two words of the block.
constexpr std::uint32_t kLow = every_byte(0x0f), kHigh = every_byte(0xf0), kSigns = every_byte(0x80);

void pack_whole_block(PanelKind kind, const std::byte* from, int column, std::byte* record) {
  const int scales = has_minimums(kind) ? 2 : 1;
  for (int i = 0; i < scales; ++i) std::memcpy(record + (i * kPanelColumns + column) * 2, from + i * 2, 2);
  const std::byte* codes = from + scales * 2;
  std::byte* to = record + scales * kPanelColumns * 2 + column * 4;
  if (kind == PanelKind::q8_0) {
    for (int w = 0; w < kSteps; ++w) store_word(to + w * kWordStride, load_word(codes + w * 4) ^ kSigns);
    return;
  }
  for (int a = 0; a < 2; ++a) {
    const std::uint32_t first = load_word(codes + a * 8), second = load_word(codes + a * 8 + 4);
    store_word(to + a * kWordStride, (first & kLow) | (second & kLow) << 4);
    store_word(to + (a + 2) * kWordStride, (first >> 4 & kLow) | (second & kHigh));
  }
}

float value_of(const BlockPanel& block, DType dtype, int code) {
  if (has_real_codes(block)) return block_format(dtype).values[code];
  if (block.codebook != Codebook::none) return static_cast<float>(block_format(dtype).codebook[code]);
  return static_cast<float>(code - block.zero_code);
}

// The scale and minimum of group `g` of the 32 k with index `in_record` of a record.
struct ScaleAndMinimum {
  float scale, minimum;
};
ScaleAndMinimum load_scales(const Layout& layout, const std::byte* record, int column, std::int64_t in_record,
                            std::int64_t g) {
  const BlockPanel& block = layout.block;
  if (block.form == ScaleForm::with_zero_point) {
    const GroupHeader header = load_header(layout, record, column);
    return {scale_of(header), -static_cast<float>(zero_point_of(header)) * scale_of(header)};
  }
  const bool is_own = block.group_scales != GroupScales::none;
  const std::byte* array = record + (is_own ? 0 : g) * kPanelColumns * scale_bytes(block);
  ScaleAndMinimum result{load_scale(block, array, column),
                         block.minimums ? load_scale(block, array + layout.minimums, column) : 0.0f};
  if (!is_own) return result;
  const std::int64_t at = (in_record * layout.groups + g) * kPanelColumns + column;
  const int byte = std::to_integer<int>(record[layout.group_scales + at]);
  if (block.group_scales == GroupScales::e4m3) {
    result.scale *= f8e4m3_to_f32(static_cast<std::uint8_t>(byte));
    return result;
  }
  const bool is_nibble = block.group_scales == GroupScales::nibbles;
  result.scale *= static_cast<float>(is_nibble ? byte & 15 : static_cast<std::int8_t>(byte));
  if (block.minimums)
    result.minimum *=
        static_cast<float>(is_nibble ? byte >> 4 : std::to_integer<int>(record[layout.group_minimums + at]));
  return result;
}

}  // namespace

void pack_blocks(PanelKind kind, DType dtype, const std::byte* blocks, std::int64_t depth, int column,
                 std::byte* panel) {
  const Layout layout(kind);
  const DTypeInfo& info = dtype_info(dtype);
  const std::byte* const end = blocks + depth / info.block_elements * info.block_bytes;
  if (kind == PanelKind::q4_0 || kind == PanelKind::q4_1 || kind == PanelKind::q8_0) {
    for (; blocks < end; blocks += info.block_bytes, panel += layout.record)
      pack_whole_block(kind, blocks, column, panel);
    return;
  }
  const BlockFormat& format = block_format(dtype);
  CHECK(format.group == layout.block.group, "[{}] panels have a scale for {} elements, blocks for {}",
        dtype_text(dtype), layout.block.group, format.group);
  const bool has_values = layout.block.code_bits > format.code_bits;
  BlockParts parts;
  std::int64_t in_record = 0;
  for (; blocks < end; blocks += info.block_bytes) {
    format.unpack(blocks, parts);
    for (std::int64_t i = 0; i < info.block_elements / kGroupDepth; ++i) {
      if (in_record == 0 && layout.block.group_scales != GroupScales::none) {
        store_scale(layout.block, panel, column, parts.scale);
        if (layout.block.minimums) store_scale(layout.block, panel + layout.minimums, column, parts.minimum);
      }
      pack_scales(layout, parts, i * layout.groups, in_record * layout.groups, column, panel);
      std::uint8_t* codes = parts.codes + i * kGroupDepth;
      for (int k = 0; has_values && k < kGroupDepth; ++k) {
        const int value = format.codebook == nullptr ? codes[k] + format.lowest_code : format.codebook[codes[k]];
        codes[k] = static_cast<std::uint8_t>(value + layout.block.zero_code);
      }
      layout.form.pack(codes, panel + layout.codes + in_record * layout.group + column * 4);
      if (++in_record == layout.depth) {
        in_record = 0;
        panel += layout.record;
      }
    }
  }
}

void read_group(PanelKind kind, DType dtype, const std::byte* panel, int column, std::int64_t group, float* values) {
  const Layout layout(kind);
  const BlockPanel& block = layout.block;
  const std::byte* record = panel + group / layout.depth * layout.record;
  const std::int64_t in_record = group % layout.depth;
  std::uint8_t codes[kGroupDepth];
  layout.form.read(record + layout.codes + in_record * layout.group + column * 4, codes);
  for (std::int64_t g = 0; g < layout.groups; ++g) {
    const auto [scale, minimum] = load_scales(layout, record, column, in_record, g);
    for (std::int64_t k = g * block.group; k < (g + 1) * block.group; ++k) {
      const float product = scale * value_of(block, dtype, codes[k]);
      values[k] = block.minimums ? product + minimum : product;
    }
  }
}

}  // namespace weft::cpu
