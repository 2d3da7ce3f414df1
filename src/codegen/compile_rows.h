#pragma once

// Compiles a row program to machine code with libweft_llvm.so. Only the first call opens the library.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/row_program.h"
#include "tensor/device.h"

namespace weft {

// Whether the library exists where compile_rows looks for it: in the folder of the binary that contains this code, in
// its parent folder, in `lib` there, or, for a library of this build, where the loader looks for libraries. Does not
// open it.
bool can_compile_rows();
// The path of the library; empty if it was not found.
const std::string& row_compiler_path();

// Returns an object file (codegen/llvm_library.h) that defines the program's function for a device with these features,
// and leaves `problem` empty. If the library cannot be opened, or LLVM refuses, `problem` says why. If LLVM ends the
// process, the program's text and `graph`, the text of the graph it was made from, are first written to `dump_folder`,
// or to the folder of temporary files if it is empty. Thread-safe.
std::vector<std::byte> compile_rows(const RowProgram& program, CpuFeatures features, std::string& problem,
                                    const std::string& dump_folder = "", const std::string& graph = "");

// What else, besides the program and the features, decides the object's code: a hash of the sources of the emitter and
// its math, and the version of LLVM that the library was built with. They are parts of cache keys. Neither opens the
// library.
std::string_view row_emitter_hash();
std::string_view row_emitter_llvm();

// `LLVM 19.1.7`, or why LLVM is not available. Opens the library.
std::string row_compiler_text();

}  // namespace weft
