#pragma once

// The exports of libweft_llvm.so, which compiles row programs to object files. The library is opened only when
// something must be compiled. Only this library uses LLVM. Both sides come from the same build, so the structures are
// plain C++.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "tensor/device.h"

namespace weft {

struct LlvmRequest {
  const RowProgram& program;  // finished
  CpuFeatures features = CpuFeatures::baseline;
  std::string dump_folder;  // where the texts of program and graph are written if LLVM ends the process
  std::string graph = {};   // the text of the graph that the program was made from; "" if there is none
};

// Writes a relocatable ELF object that defines a RowFunction with the program's name. On failure returns false and
// writes why to `problem`. If LLVM ends the process or crashes, the exit status is 3, and standard error names the
// files that contain the program and its graph. Thread-safe.
using LlvmCompile = bool(const LlvmRequest& request, std::vector<std::byte>& object, std::string& problem);

// Ends the process as LLVM would. For tests.
enum class LlvmBreak : std::uint8_t { fatal_error, bad_address, stack_overflow, abort };
using LlvmBreaker = void(const LlvmRequest& request, LlvmBreak how);

// kLlvmInterface (codegen/llvm_interface.h) of the build that made the library.
using LlvmInterface = const char*();
using LlvmVersion = const char*();

// The ELF note (base/elf_note.h) in which the library stores its kLlvmInterface and a zero, so that it can be read
// without opening the library.
inline constexpr const char* kLlvmNoteOwner = "weft";
inline constexpr std::uint32_t kLlvmNoteType = 1;

inline constexpr const char* kLlvmInterfaceSymbol = "weft_llvm_interface";
inline constexpr const char* kLlvmVersionSymbol = "weft_llvm_version";
inline constexpr const char* kLlvmCompileSymbol = "weft_llvm_compile";
inline constexpr const char* kLlvmBreakSymbol = "weft_llvm_break";

}  // namespace weft
