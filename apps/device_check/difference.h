#pragma once

// Compares the result of a kernel with the recorded result.

#include <cstddef>
#include <span>
#include <string>

#include "apps/device_check/launch_file.h"

namespace weft::device_check {

// The allowed difference from the record. `input` is the dtype that the kernel computes on.
//   bits         none, except that a NaN may have other bits than the recorded NaN
//   last_places  the effect of the device's own functions and order of sums (tests/cuda holds the emulator to the same
//                bound): one step between codes, two roundings of `input` for values, and for f32 8 units in the last
//                place for each of exp and reciprocal
//   of_largest   the same, relative to the largest value of the buffer, for sums whose terms may cancel
enum class Bound : std::uint8_t { bits, last_places, of_largest };

// Returns "" if the buffers agree, else the number of elements that differ and the first of them.
std::string difference_of(const RecordedBuffer& wanted, std::span<const std::byte> came, Bound bound, DType input);

}  // namespace weft::device_check
