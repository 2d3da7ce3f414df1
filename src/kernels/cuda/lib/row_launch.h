#pragma once

// The number of blocks for kernels that process rows without groups in lanes (group_launch.h), and their order.

#include <string>

#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/launch.h"
#include "tensor/dtype.h"

namespace weft::cuda {

// The elements of 16 bytes, which a thread loads at once.
std::int64_t elements_of_load(DType dtype);

// One block for each row: rms_norm and dynamic_per_token_quant. There are fewer than 2^31.
LaunchShape plan_rows(std::int64_t rows);

// Plans silu_and_mul for the rows and columns of the arguments; sets slices. If scales of fp4 groups are in tiles, it
// also sets tiles; threads then exist for the rows and groups of tiles beyond those of x, too. Throws UserError with
// `kernel` for more blocks than a launch can have.
LaunchShape plan_silu_and_mul(const std::string& kernel, DType x, bool has_tiles, SiluAndMulArguments& arguments);

// Plans gather_rows for these rows and units, and sets both. Throws UserError in the same case.
LaunchShape plan_gather_rows(const std::string& kernel, std::int64_t rows, std::int64_t units,
                             GatherRowsArguments& arguments);

}  // namespace weft::cuda
