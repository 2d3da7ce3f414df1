#pragma once

// A tensor of a file of weights.

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace weft {

struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  // row-major; dims may be 0
  std::int64_t offset = 0;          // in bytes, from the start of the file
  std::int64_t bytes = 0;
};

}  // namespace weft
