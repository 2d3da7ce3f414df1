#pragma once

// silu_and_mul followed by quantization per group of 64 or 128 columns (int8: also 32) in one kernel: codes of f8e4m3
// or int8, one f32 scale for each group. x is [rows, 2 * columns], the gates first. Two designs:
//
//   fast  16 elements a thread, by loads of 16 bytes that are all in flight at once. 2 to 8 neighbouring lanes have a
//         group and find its largest magnitude by shuffles: no shared memory, no barrier. 5.03 bytes an element (bf16).
//         A block has neighbouring groups of a row; if scales are column-major, neighbouring rows of one group index,
//         so that the scales of a warp are contiguous.
//   tree  as the kernel was first published: a block for each row and group, a thread for each element, a tree in
//         shared memory.

#include <string>

#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/launch.h"
#include "kernels/cuda/lib/mathematics.h"
#include "tensor/dtype.h"

namespace weft::cuda {

enum class SiluAndMulDesign : std::uint8_t { fast, tree };

struct SiluAndMulPerBlockQuant {
  DType x = DType::bf16;          // bf16, f16, f32
  DType codes = DType::f8e4m3;    // f8e4m3, i8
  std::int64_t group_size = 128;  // 64, 128; 32 with i8
  // Whether values are rounded to the dtype of x before quantization (intermediate=input_dtype) or kept in f32.
  bool rounds = true;
  SiluAndMulDesign design = SiluAndMulDesign::fast;
  Mathematics mathematics = Mathematics::device;
  // For int8 in the fast design: codes are rounded towards zero, not to nearest.
  bool truncates = false;

  bool takes_group() const;
  // The kernel's name. Throws UserError if there is no such kernel.
  std::string kernel_name() const;
  // Sets the order of blocks and returns the launch. Throws UserError for no rows, columns that are no multiple of the
  // group, a misaligned pointer, no scales, or more blocks than a launch can have.
  LaunchShape plan(SiluAndMulPerBlockQuantArguments& arguments) const;
};

}  // namespace weft::cuda
