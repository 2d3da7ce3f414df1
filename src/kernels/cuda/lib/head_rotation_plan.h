#pragma once

// Plans the launch of rotation and normalization of heads (device/head_rotation.cu). A lane takes 16 bytes of columns
// if everything that is read and stored is a multiple of such vectors and aligned to them, else two columns. Both have
// the same bits.

#include <string>

#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/launch.h"
#include "tensor/dtype.h"

namespace weft::cuda {

struct HeadRotationPlan {
  std::string kernel;
  LaunchShape shape;
};
// Takes the arguments of the launch, with at least one token; `x` is the type of query, key and value. Throws UserError
// for more heads than a launch can have.
HeadRotationPlan plan_head_rotation(DType x, const HeadRotationArguments& arguments);

}  // namespace weft::cuda
