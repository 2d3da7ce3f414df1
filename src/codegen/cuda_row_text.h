#pragma once

// A row program as CUDA C++: a kernel of a block of kCudaRowThreads threads for each row, whose threads take the
// columns in turn. Sums are in the order of house mathematics, a partial sum for each thread and a tree, so that the
// kernel has the bits of every other form of the program: the two warps meet once in shared memory, behind one barrier,
// the rest are shuffles. A group's sum or maximum is of a warp, whose lanes take the columns; they wait in shared
// memory.
//
// To be compiled by NVRTC with kCudaRowOption, contraction off, and cuda_row_headers() as headers.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

inline constexpr int kCudaRowThreads = 64;
inline constexpr const char* kCudaRowOption = "--device-as-default-execution-space";

// What stands once before the kernels.
std::string cuda_row_prologue();
// What that includes besides <cstdint>, as #include names it, and its text, which the program carries.
std::vector<std::pair<std::string, std::string>> cuda_row_headers();

// The kernel of one finished program, under its name. It takes `void* buffers[]` of the program's buffers, without
// scratch, then the first row as a 64-bit number; block i computes the row i further on, of a program in parts a part
// of a row. No output may lie over an input. A row number outside of its table stops the launch. UserError where
// sums and maxima of groups take more shared memory than every device has.
std::string cuda_row_text(const RowProgram& program);

}  // namespace weft
