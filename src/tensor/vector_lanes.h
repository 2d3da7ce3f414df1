#pragma once

#include "tensor/device.h"

namespace weft {

// Floats of the widest vector that code for these features computes with.
inline int vector_lanes(CpuFeatures features) {
  return features >= CpuFeatures::avx512 ? 16 : features >= CpuFeatures::avx2 ? 8 : 4;
}

}  // namespace weft
