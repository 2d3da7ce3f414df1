#pragma once

// Blocks for weights of Hugging Face folders, which store codes, scales and zero points in tensors of their own
// (io/grouped_weight.h, io/quantized_weight.h). A block has all that belongs to some columns of a row; a larger group
// is several blocks with the same scale. The layouts are Weft's own and are never in a file.
//
//   i4g32, i4g64, i4g128   value = scale * (code - zero point). 3 bytes of scale and zero point, then codes
//   nf4g32, nf4g64         value = scale * kNf4Values[code]. The scale in f32, then codes
//   i8g32                  value = scale * code. The scale in f32, then signed bytes
//   e4m3g32, e4m3g128      value = scale * code. The scale in f32, then codes of f8e4m3
//   e2m1g16                value = (factor * scale) * code. The factor in f32, four scales of f8e4m3 for 16 columns
//                          each, then 64 codes of f4e2m1
//
// Each product is rounded to f32. Byte i of codes of four bits has element 2 * i in its low half and 2 * i + 1 in its
// high half.
//
// The 3 bytes are 16 bits of the scale as bf16, and a byte with three more bits of its mantissa above five bits of the
// zero point. So every f16 and every bf16 has an exact scale, and groups of 32 are 1.06 times as large as in the file.

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/float8.h"

namespace weft {

// QLoRA's NormalFloat (bitsandbytes, MIT licence): quantiles of the normal distribution.
inline constexpr float kNf4Values[16] = {-1.0f,
                                         -0.6961928009986877f,
                                         -0.5250730514526367f,
                                         -0.39491748809814453f,
                                         -0.28444138169288635f,
                                         -0.18477343022823334f,
                                         -0.09105003625154495f,
                                         0.0f,
                                         0.07958029955625534f,
                                         0.16093020141124725f,
                                         0.24611230194568634f,
                                         0.33791524171829224f,
                                         0.44070982933044434f,
                                         0.5626170039176941f,
                                         0.7229568362236023f,
                                         1.0f};

// The values of the codes of f8e4m3.
inline constexpr std::array<float, 256> kE4m3Values = [] {
  std::array<float, 256> values{};
  for (std::size_t code = 0; code < values.size(); ++code)
    values[code] = f8e4m3_to_f32(static_cast<std::uint8_t>(code));
  return values;
}();

inline constexpr int kGroupHeaderBytes = 3, kFloatScaleBytes = 4;
inline constexpr int kSmallScales = 4;  // of e2m1g16
inline constexpr int kMostZeroPoint = 31;

// A scale and zero point in 3 bytes: `scale` is the first two, `rest` the third.
struct GroupHeader {
  std::uint16_t scale;
  std::uint8_t rest;
};
// Whether the scale is exact in a header, as every f16 and every bf16 is.
bool fits_group_header(float scale);
// InternalError unless the scale fits and the zero point is 0 to 31.
GroupHeader group_header(float scale, int zero_point);
float scale_of(GroupHeader header);
inline int zero_point_of(GroupHeader header) { return header.rest & kMostZeroPoint; }

void store_group_header(GroupHeader header, std::byte* block);

}  // namespace weft
