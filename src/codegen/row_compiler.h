#pragma once

// libweft_llvm.so: where it lies, and its functions. It is opened by the first who asks for them, and by nothing else.

#include <string>

#include "codegen/llvm_library.h"

namespace weft {

struct RowCompiler {
  LlvmCompile* compile = nullptr;
  LlvmVersion* version = nullptr;
  std::string path;     // empty where there is none
  std::string problem;  // why the functions are not there; "" where they are
};

// Opens the library where that was not done. Once for the process, as the loader has it.
const RowCompiler& row_compiler();

// Gives back what the library and LLVM took and do not hold: freed memory, and the pages of their files, which come
// back when something is compiled again. Nothing where the library was not opened. Thread-safe.
void return_row_compiler_memory();

}  // namespace weft
