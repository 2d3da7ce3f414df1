#pragma once

// Row programs to machine code, by libweft_llvm.so: opened by the first call, and by nothing else.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "tensor/device.h"

namespace weft {

// Whether the library lies where compile_rows looks for it: beside what holds this code, in the folder above it, and in
// `lib` there. It is not opened.
bool can_compile_rows();

// An object file (codegen/llvm_library.h) that defines each program's function, for a device of these features;
// `problem` stays empty. Where the library cannot be opened, or LLVM refuses, `problem` says so.
std::vector<std::byte> compile_rows(std::span<const RowProgram* const> programs, CpuFeatures features,
                                    std::string& problem);

// `LLVM 19.1.7`, or why there is none; opens the library.
std::string row_compiler_text();

}  // namespace weft
