#pragma once

#include "tensor/device.h"

namespace weft {

// Number of floats in the widest vector that code for these features uses.
inline int vector_lanes(CpuFeatures features) {
  return features >= CpuFeatures::avx512 ? 16 : features >= CpuFeatures::avx2 ? 8 : 4;
}

}  // namespace weft
