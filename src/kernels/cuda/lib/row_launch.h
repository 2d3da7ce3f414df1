#pragma once

// How many blocks it takes for kernels that go over rows without groups in lanes (group_launch.h), and how they stand.

#include <string>

#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/launch.h"
#include "tensor/dtype.h"

namespace weft::cuda {

// Of 16 bytes, which a thread loads at once.
std::int64_t elements_of_load(DType dtype);

// A block a row: rms_norm and dynamic_per_token_quant. There are fewer than 2^31.
LaunchShape plan_rows(std::int64_t rows);

// silu_and_mul of x with rows and columns as the arguments have them; fills in slices, and tiles where scales of fp4
// groups lie in tiles, whose rows and groups beyond those of x have threads, too. UserError, naming `kernel`, for more
// blocks than a launch has.
LaunchShape plan_silu_and_mul(const std::string& kernel, DType x, bool has_tiles, SiluAndMulArguments& arguments);

// gather_rows of so many rows of so many units; fills both in. UserError likewise.
LaunchShape plan_gather_rows(const std::string& kernel, std::int64_t rows, std::int64_t units,
                             GatherRowsArguments& arguments);

}  // namespace weft::cuda
