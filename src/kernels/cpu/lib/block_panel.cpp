#include "kernels/cpu/lib/block_panel.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/cpu/lib/squares.h"
#include "tensor/bfloat16.h"
#include "tensor/block_format.h"
#include "tensor/float16.h"
#include "tensor/float8.h"
#include "tensor/group_blocks.h"

namespace weft::cpu {
namespace {

// Codes are moved in words of 4 bytes, the codes of a step: word w of a column is w * 128 bytes after the first. Panels
// are packed four columns at a time, whose words are a vector, and read one column at a time.
constexpr std::int64_t kWordStride = kPanelColumns * 4;
constexpr int kSteps = kGroupDepth / 4;
constexpr int kTogether = 4;
using Words = SquareRow32;
static_assert(sizeof(Words) == kTogether * 4);

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

  static void pack(const Words* codes, std::byte* plane) {
#pragma GCC unroll 8
    for (int word = 0; word < kSteps / steps_of_word; ++word) {
      Words all{};
#pragma GCC unroll 8
      for (int i = 0; i < steps_of_word; ++i) all |= (codes[word * steps_of_word + i] >> first & mask) << i * bits;
      std::memcpy(plane + word * kWordStride, &all, sizeof all);
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
  static void pack(const Words* codes, std::byte* planes) {
    Plane<0, low_bits>::pack(codes, planes);
    if constexpr (high_bits > 0) Plane<low_bits, high_bits>::pack(codes, planes + low_bytes);
  }
  static void read(const std::byte* planes, std::uint8_t* codes) {
    Plane<0, low_bits>::read(planes, codes);
    if constexpr (high_bits > 0) Plane<low_bits, high_bits>::read(planes + low_bytes, codes);
  }
};

// How the codes of 32 k are written, four columns at a time, and read.
struct CodeForm {
  int bits;
  void (*pack)(const Words* codes, std::byte* planes);
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

// The scales of a record: those of a block's groups from `first` on.
void pack_scales(const Layout& layout, const BlockParts& parts, int first, int column, std::byte* record) {
  const BlockPanel& block = layout.block;
  const float *scales = parts.scales + first, *minimums = parts.minimums + first;
  if (block.form == ScaleForm::with_zero_point) return store_header(layout, parts, column, record);
  if (block.group_scales == GroupScales::none) {
    for (int g = 0; g < block.depth / block.group; g += block.scale_depth / block.group) {
      std::byte* array = record + g * block.group / block.scale_depth * kPanelColumns * scale_bytes(block);
      store_scale(block, array, column, parts.scale * scales[g]);
      if (block.minimums) store_scale(block, array + layout.minimums, column, parts.minimum * minimums[g]);
    }
    return;
  }
  store_scale(block, record, column, parts.scale);
  if (block.minimums) store_scale(block, record + layout.minimums, column, parts.minimum);
  std::byte* const own = record + layout.group_scales + column;
  std::byte* const own_minimums = record + layout.group_minimums + column;
  for (int g = 0; g < block.depth / block.group; ++g) {
    const int at = g * kPanelColumns;
    if (block.group_scales == GroupScales::e4m3)
      own[at] = static_cast<std::byte>(f32_to_f8e4m3(scales[g]));
    else if (block.group_scales == GroupScales::nibbles)
      own[at] = static_cast<std::byte>(static_cast<int>(scales[g]) | static_cast<int>(minimums[g]) << 4);
    else
      own[at] = static_cast<std::byte>(static_cast<int>(scales[g]));
    if (block.group_scales == GroupScales::bytes && block.minimums)
      own_minimums[at] = static_cast<std::byte>(static_cast<int>(minimums[g]));
  }
}

// An address in each of four columns, at the same offset. The last panel may have fewer columns: then the others repeat
// its last one.
struct Columns {
  const std::byte* at[kTogether];
  int count;

  // Four words of each, `bytes` after the addresses.
  void load(std::int64_t bytes, Words* words) const {
    Words square[kTogether];
    for (int c = 0; c < kTogether; ++c) std::memcpy(&square[c], at[c] + bytes, sizeof square[c]);
    transpose(square);
    for (int i = 0; i < kTogether; ++i) words[i] = square[i];
  }
};

// Writes the codes of all steps of 32 k; zeros for missing columns.
void pack_steps(const Layout& layout, int count, Words* steps, std::byte* planes) {
  for (int c = count; c < kTogether; ++c)
    for (int step = 0; step < kSteps; ++step) steps[step][c] = 0;
  layout.form.pack(steps, planes);
}

// How the codes of a block of 32 k are read, which begin `bytes` after the block.
using LoadSteps = void(const Columns& blocks, std::int64_t bytes, Words* steps);

inline void load_nibbles(const Columns& blocks, std::int64_t bytes, Words* steps) {
  Words both[kTogether];
  blocks.load(bytes, both);
  for (int i = 0; i < kTogether; ++i) {
    steps[i] = both[i] & every_byte(15);
    steps[i + kTogether] = both[i] >> 4 & every_byte(15);
  }
}

// Before the nibbles, bit k of 32 is the fifth bit of code k.
inline void load_five_bits(const Columns& blocks, std::int64_t bytes, Words* steps) {
  load_nibbles(blocks, bytes + 4, steps);
  Words bits;
  for (int c = 0; c < kTogether; ++c) bits[c] = load_word(blocks.at[c] + bytes);
  for (int step = 0; step < kSteps; ++step) {
    const Words four = bits >> 4 * step & 15;  // bit i becomes the lowest bit of byte i
    steps[step] |= ((four | four << 7 | four << 14 | four << 21) & every_byte(1)) << 4;
  }
}

inline void load_bytes(const Columns& blocks, std::int64_t bytes, Words* steps) {
  blocks.load(bytes, steps);
  blocks.load(bytes + 16, steps + kTogether);
}
inline void load_signed_bytes(const Columns& blocks, std::int64_t bytes, Words* steps) {
  load_bytes(blocks, bytes, steps);
  for (int step = 0; step < kSteps; ++step) steps[step] ^= every_byte(0x80);
}

// Packs blocks of 32 codes, which begin with their scale and minimum (if any) in the form that panels store. So they
// need not be unpacked first. `rows` has 32 addresses, also if the panel has fewer columns.
template <int scale_bytes, LoadSteps load_steps>
void pack_whole_blocks(const Layout& layout, const std::byte* const* rows, int columns, std::int64_t blocks,
                       std::byte* panel) {
  const std::int64_t block_bytes = scale_bytes + kGroupDepth * layout.block.code_bits / 8;
  for (std::int64_t b = 0; b < blocks; ++b, panel += layout.record)
    for (int first = 0; first < columns; first += kTogether) {
      Columns together{{}, std::min(columns - first, kTogether)};
      for (int c = 0; c < kTogether; ++c) together.at[c] = rows[first + c] + b * block_bytes;
      for (int c = 0; c < together.count; ++c)
        for (int i = 0; i < scale_bytes; i += 2)
          std::memcpy(panel + i * kPanelColumns + (first + c) * 2, together.at[c] + i, 2);
      Words steps[kSteps];
      load_steps(together, scale_bytes, steps);
      pack_steps(layout, together.count, steps, panel + layout.codes + first * 4);
    }
}

struct WholeBlocks {
  PanelKind kind;
  void (*pack)(const Layout& layout, const std::byte* const* rows, int columns, std::int64_t blocks, std::byte* panel);
};
constexpr WholeBlocks kWholeBlocks[] = {
    {PanelKind::q4_0, pack_whole_blocks<2, load_nibbles>},   {PanelKind::q4_1, pack_whole_blocks<4, load_nibbles>},
    {PanelKind::iq4_nl, pack_whole_blocks<2, load_nibbles>}, {PanelKind::q5_0, pack_whole_blocks<2, load_five_bits>},
    {PanelKind::q5_1, pack_whole_blocks<4, load_five_bits>}, {PanelKind::q8_0, pack_whole_blocks<2, load_signed_bytes>},
};

// Panels of types without a kind of their own have the codes' values.
void replace_by_values(const Layout& layout, const BlockFormat& format, int elements, std::uint8_t* codes) {
  if (layout.block.code_bits <= format.code_bits) return;
  for (int k = 0; k < elements; ++k) {
    const int value = format.codebook == nullptr ? codes[k] + format.lowest_code : format.codebook[codes[k]];
    codes[k] = static_cast<std::uint8_t>(value + layout.block.zero_code);
  }
}

// Unpacks blocks, which are whole records.
void pack_unpacked(const Layout& layout, const BlockFormat& format, const std::byte* const* rows, int columns,
                   std::int64_t depth, std::byte* panel) {
  const DTypeInfo& info = dtype_info(format.dtype);
  const int elements = static_cast<int>(info.block_elements), records = elements / layout.block.depth;
  BlockParts parts[kTogether];
  Columns codes{};
  for (int c = 0; c < kTogether; ++c) codes.at[c] = reinterpret_cast<const std::byte*>(parts[c].codes);
  for (std::int64_t b = 0; b < depth / elements; ++b, panel += records * layout.record)
    for (int first = 0; first < columns; first += kTogether) {
      codes.count = std::min(columns - first, kTogether);
      for (int c = 0; c < kTogether; ++c) format.unpack(rows[first + c] + b * info.block_bytes, parts[c]);
      for (BlockParts& one : parts) replace_by_values(layout, format, elements, one.codes);
      for (int r = 0; r < records; ++r) {
        std::byte* const record = panel + r * layout.record;
        for (int c = 0; c < codes.count; ++c)
          pack_scales(layout, parts[c], r * layout.block.depth / layout.block.group, first + c, record);
        for (int group = 0; group < layout.depth; ++group) {
          Words steps[kSteps];
          load_bytes(codes, r * layout.block.depth + group * kGroupDepth, steps);
          pack_steps(layout, codes.count, steps, record + layout.codes + group * layout.group + first * 4);
        }
      }
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

void pack_blocks(PanelKind kind, DType dtype, const std::byte* const* rows, int columns, std::int64_t depth,
                 std::byte* panel) {
  const Layout layout(kind);
  const std::byte* all_rows[kPanelColumns];
  for (int column = 0; column < kPanelColumns; ++column) all_rows[column] = rows[std::min(column, columns - 1)];
  const auto* const whole = std::ranges::find(kWholeBlocks, kind, &WholeBlocks::kind);
  if (whole != std::end(kWholeBlocks)) return whole->pack(layout, all_rows, columns, depth / kGroupDepth, panel);
  const BlockFormat& format = block_format(dtype);
  CHECK(format.group == layout.block.group, "[{}] panels have a scale for {} elements, blocks for {}",
        dtype_text(dtype), layout.block.group, format.group);
  pack_unpacked(layout, format, all_rows, columns, depth, panel);
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
