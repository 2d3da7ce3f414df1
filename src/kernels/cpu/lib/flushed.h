#pragma once

// Arithmetic with subnormal numbers as zeros, for emulations of instructions.

#include <cmath>
#include <cstdint>
#include <cstring>

namespace weft::cpu {
namespace {

// A zero of the same sign for a subnormal number.
inline float flushed(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7f800000u) == 0) bits &= 0x80000000u;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline float flushed_sum(float a, float b) { return flushed(flushed(a) + flushed(b)); }
inline float flushed_fma(float a, float b, float c) { return flushed(std::fma(flushed(a), flushed(b), flushed(c))); }

}  // namespace
}  // namespace weft::cpu
