#pragma once

// The grids of ggml's i-quants: a code of a block is the index of a row of 4 or 8 small numbers.

#include <cstdint>

namespace weft::blocks {

// Rows of 8, two bits each. kIq1SGrid: the value is bits - 1. kIq2..Grid: the bits are an index into kIq2Values.
extern const std::uint16_t kIq1SGrid[2048];
extern const std::uint16_t kIq2XxsGrid[256];
extern const std::uint16_t kIq2XsGrid[512];
extern const std::uint16_t kIq2SGrid[1024];
inline constexpr int kIq2Values[3] = {8, 25, 43};
// Rows of 4, three bits each. kIq3XxsGrid: an index into kIq3XxsValues. kIq3SGrid: the value is 2 * bits + 1.
extern const std::uint16_t kIq3XxsGrid[256];
extern const std::uint16_t kIq3SGrid[512];
inline constexpr int kIq3XxsValues[8] = {4, 12, 20, 28, 36, 44, 52, 62};

}  // namespace weft::blocks
