#pragma once

// The tokens that attention's attribute `window` leaves a row: the last `window` of those before `length`. This header
// uses plain types only, because objects compiled for one instruction set include it.

#include <cstdint>

namespace weft {

class Attributes;

constexpr std::int64_t kNoWindow = INT64_MAX;

// Returns kNoWindow if the call has no window.
std::int64_t attention_window(const Attributes& attributes);

constexpr std::int64_t first_in_window(std::int64_t length, std::int64_t window) {
  return length > window ? length - window : 0;
}

}  // namespace weft
