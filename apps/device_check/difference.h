#pragma once

// What a kernel gave, held to what was recorded.

#include <cstddef>
#include <span>
#include <string>

#include "apps/device_check/launch_file.h"

namespace weft::device_check {

// How near to the record, where `input` is the dtype that a kernel computes on:
//   bits         the same; only a NaN may have other bits than another
//   last_places  what the device's own functions and its order of sums may make of it (tests/cuda holds the emulator to
//                the same): codes one step apart, values by two roundings of `input`, f32 by 8 units of exp and
//                reciprocal
//   of_largest   the same of the largest value of the buffer: of sums whose terms may cancel
enum class Bound : std::uint8_t { bits, last_places, of_largest };

// "" where it agrees; else how many elements do not, and the first of them.
std::string difference_of(const RecordedBuffer& wanted, std::span<const std::byte> came, Bound bound, DType input);

}  // namespace weft::device_check
