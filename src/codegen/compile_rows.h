#pragma once

// A row program to machine code, by libweft_llvm.so: opened by the first call, and by nothing else.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/row_program.h"
#include "tensor/device.h"

namespace weft {

// Whether the library lies where compile_rows looks for it: beside what holds this code, in the folder above it, in
// `lib` there, or, of this build, where the loader looks for libraries. It is not opened.
bool can_compile_rows();
// Its path; empty where it does not.
const std::string& row_compiler_path();

// An object file (codegen/llvm_library.h) that defines the program's function, for a device of these features;
// `problem` stays empty. Where the library cannot be opened, or LLVM refuses, `problem` says so. Where LLVM ends the
// process, the program's text is left in `dump_folder`, or in that of temporary files, and beside it `graph`, the text
// of the graph it was made from. Thread-safe.
std::vector<std::byte> compile_rows(const RowProgram& program, CpuFeatures features, std::string& problem,
                                    const std::string& dump_folder = "", const std::string& graph = "");

// What the object is made by, besides the program and the features: a hash of the sources of the emitter and its
// mathematics, and the version of LLVM that the library was built with. For keys; nothing is opened.
std::string_view row_emitter_hash();
std::string_view row_emitter_llvm();

// `LLVM 19.1.7`, or why there is none; opens the library.
std::string row_compiler_text();

}  // namespace weft
