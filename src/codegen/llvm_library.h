#pragma once

// What libweft_llvm.so exports: row programs in, an object file out. The library is opened when something must be
// compiled, and only then; it is the one place that knows LLVM. Both sides are of one build: the structures are plain
// C++.

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "tensor/device.h"

namespace weft {

struct LlvmRequest {
  const RowProgram& program;  // finished
  CpuFeatures features = CpuFeatures::baseline;
};

// A relocatable ELF object that defines a RowFunction of the program's name. On failure false, and why. A fatal error
// of LLVM ends the process with status 3, after the program is written to standard error. Thread-safe.
using LlvmCompile = bool(const LlvmRequest& request, std::vector<std::byte>& object, std::string& problem);

// kLlvmInterface (codegen/llvm_interface.h) of the build that made the library.
using LlvmInterface = const char*();
using LlvmVersion = const char*();

inline constexpr const char* kLlvmInterfaceSymbol = "weft_llvm_interface";
inline constexpr const char* kLlvmVersionSymbol = "weft_llvm_version";
inline constexpr const char* kLlvmCompileSymbol = "weft_llvm_compile";

}  // namespace weft
