#pragma once

// The tokens that attention's attributes `window` and `causal` leave a row. Of the `length` tokens up to its own, these
// are the last `window`; of those after it, none or `ahead`. This header uses plain types only, because objects
// compiled for one instruction set include it.

#include <cstdint>

namespace weft {

class Attributes;

constexpr std::int64_t kNoWindow = INT64_MAX;

// Returns kNoWindow if the call has no window.
std::int64_t attention_window(const Attributes& attributes);
// The tokens after its own that a row attends to: 0 if the call is causal, else as many as before its own.
std::int64_t attention_ahead(const Attributes& attributes);

constexpr std::int64_t first_in_window(std::int64_t length, std::int64_t window) {
  return length > window ? length - window : 0;
}
// The end of the tokens that a row attends to, in a sequence of `all` tokens.
constexpr std::int64_t end_of_attention(std::int64_t length, std::int64_t ahead, std::int64_t all) {
  return ahead < all - length ? length + ahead : all;
}

}  // namespace weft
