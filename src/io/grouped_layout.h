#pragma once

// How codes of groups are counted in words and rows: for the files of grouped_weight.h.

#include <cstdint>

#include "io/quantization_config.h"

namespace weft {

inline constexpr std::int64_t kLeastGroup = 32;  // columns of the smallest block
inline constexpr std::int64_t kWordBits = 32;
inline std::int64_t rounded_up(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

// The fewest codes that fill words. Those of 3 bits are in three words.
inline std::int64_t codes_of_words(int bits) { return kWordBits % bits == 0 ? kWordBits / bits : kWordBits; }

inline std::int64_t words_of(std::int64_t codes, int bits) { return codes * bits / kWordBits; }

// Codes of 2 and 3 bits are read as codes of 4 bits, and those of 5 and 6 as bytes.
inline int bits_in_blocks(const GroupedCodes& groups) { return groups.bits > 4 ? 8 : 4; }

inline bool is_bitsandbytes(const GroupedCodes& groups) { return groups.layout == GroupLayout::bitsandbytes; }
inline bool has_floats(const GroupedCodes& groups) { return groups.values == CodeValues::floats; }
inline bool has_minimums(const GroupedCodes& groups) {
  return groups.layout == GroupLayout::mlx && !has_floats(groups);
}
inline bool has_words_of_rows(const GroupedCodes& groups) {
  return groups.layout == GroupLayout::awq || groups.layout == GroupLayout::gptq;
}

inline std::int64_t group_of(const GroupedCodes& groups, std::int64_t columns) {
  return groups.group_size > 0 ? groups.group_size : columns;
}

}  // namespace weft
