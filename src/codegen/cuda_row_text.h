#pragma once

// Prints a row program as CUDA C++: a kernel with one block of kCudaRowThreads threads for each row. Thread t computes
// columns t, t + kCudaRowThreads and so on. Sums follow the order of the reference math (a partial sum for each thread,
// then a tree), so the kernel computes the same bits as every other form of the program. The two warps combine their
// results in shared memory after one barrier; all other steps are shuffles. One warp computes a group's sum or maximum,
// its lanes share the columns, and the result is kept in shared memory.
//
// NVRTC must compile it with kCudaRowOption, without contraction, and with cuda_row_headers() as headers.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

inline constexpr int kCudaRowThreads = 64;
inline constexpr const char* kCudaRowOption = "--device-as-default-execution-space";

// The text before the kernels; needed once.
std::string cuda_row_prologue();
// The headers that the prologue includes in addition to <cstdint>: the name as #include spells it, and the text, which
// is built into the program.
std::vector<std::pair<std::string, std::string>> cuda_row_headers();

// The kernel of one finished program, under its name. It takes `void* buffers[]` (the program's buffers, without
// scratch), then the first row as a 64-bit number. Block i computes row first + i; in a program with parts, it computes
// one part of a row. No output may overlap an input. A row index outside its table stops the launch. UserError if the
// sums and maxima of groups need more shared memory than every device has.
std::string cuda_row_text(const RowProgram& program);

}  // namespace weft
