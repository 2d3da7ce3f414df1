#pragma once

// Finds libweft_llvm.so and its functions. The library is opened by the first request for them, and only then.

#include <string>

#include "codegen/llvm_library.h"

namespace weft {

struct RowCompiler {
  LlvmCompile* compile = nullptr;
  LlvmVersion* version = nullptr;
  std::string path;     // empty if there is none
  std::string problem;  // why the functions are missing; "" if they are not
};

// Opens the library unless it is open. The process opens it once.
const RowCompiler& row_compiler();

// Returns unused memory of the library and of LLVM to the system: freed memory, and the pages of their files, which are
// loaded again when something is compiled again. Does nothing if the library was not opened. Thread-safe.
void return_row_compiler_memory();

}  // namespace weft
