#pragma once

// The element types that row-wise and attention code is instantiated for, as plain types: this header is read by the
// objects built for an instruction set, which must instantiate nothing of std.

#include <cstdint>

namespace weft::cpu {

enum class Element : std::uint8_t { f32, f16, bf16 };
inline constexpr int kElements = 3;

// The bits of one f16 and of one bf16.
struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

}  // namespace weft::cpu
