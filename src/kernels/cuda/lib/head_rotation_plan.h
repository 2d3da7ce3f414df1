#pragma once

// How rotation and normalization of heads is launched (device/head_rotation.cu). A lane takes 16 bytes of columns where
// all that is read and stored divides into such vectors and begins at one, else two columns. Both have the same bits.

#include <string>

#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/launch.h"
#include "tensor/dtype.h"

namespace weft::cuda {

struct HeadRotationPlan {
  std::string kernel;
  LaunchShape shape;
};
// For arguments as the launch will be given them, with at least one token; `x` is the type of query, key and value.
// UserError for more heads than a launch has.
HeadRotationPlan plan_head_rotation(DType x, const HeadRotationArguments& arguments);

}  // namespace weft::cuda
