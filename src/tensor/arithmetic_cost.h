#pragma once

// The cost of a function for one vector, in instructions as short as an addition, on AVX-512. For functions with
// reference math (tensor/reference_math.h) it is the count of their instructions; for instructions of the processor,
// their share of the issue limit.

namespace weft {

inline constexpr int kDivisionCost = 6;
inline constexpr int kSquareRootCost = 6;
inline constexpr int kExpCost = 16;
inline constexpr int kSigmoidCost = kExpCost + kDivisionCost + 2;
inline constexpr int kTanhCost = 30;
inline constexpr int kErfCost = 30;
inline constexpr int kConversionCost = 4;             // between element types, including both ways of rounding
inline constexpr int kSmallFloatConversionCost = 10;  // to codes of at most a byte, rounded by their own exponent

}  // namespace weft
