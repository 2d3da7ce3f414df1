#pragma once

// What a vector of a function takes of a processor, in instructions as short as an addition: those of its house
// mathematics (tensor/house_math.h), or for what the processor has itself its share of the issue limit, on AVX-512.

namespace weft {

inline constexpr int kDivisionCost = 6;
inline constexpr int kSquareRootCost = 6;
inline constexpr int kExpCost = 16;
inline constexpr int kSigmoidCost = kExpCost + kDivisionCost + 2;
inline constexpr int kTanhCost = 30;
inline constexpr int kErfCost = 30;
inline constexpr int kConversionCost = 4;             // between element types, both ways of rounding counted
inline constexpr int kSmallFloatConversionCost = 10;  // to codes of a byte or less, rounded by their own exponent

}  // namespace weft
