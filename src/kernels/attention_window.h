#pragma once

// The tokens that attention's attribute `window` leaves a row: of those before `length`, the last `window`. Plain types
// only, as objects for one instruction set read it.

#include <cstdint>

namespace weft {

class Attributes;

constexpr std::int64_t kNoWindow = INT64_MAX;

// kNoWindow where the call has none.
std::int64_t attention_window(const Attributes& attributes);

constexpr std::int64_t first_in_window(std::int64_t length, std::int64_t window) {
  return length > window ? length - window : 0;
}

}  // namespace weft
