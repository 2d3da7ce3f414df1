#pragma once

// What libweft_llvm.so exports: row programs in, an object file out. The library is opened when something must be
// compiled, and only then; it is the one place that knows LLVM. Both sides are of one build: the structures are plain
// C++.

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
  std::string dump_folder;  // for the two texts, if the program is the last that LLVM sees
  std::string graph = {};   // the text of the graph that it was made from; "" where there is none
};

// A relocatable ELF object that defines a RowFunction of the program's name. On failure false, and why. Where LLVM ends
// the process or crashes, the status is 3, and standard error says which files have the program and its graph.
// Thread-safe.
using LlvmCompile = bool(const LlvmRequest& request, std::vector<std::byte>& object, std::string& problem);

// Ends the process as LLVM would; for tests.
enum class LlvmBreak : std::uint8_t { fatal_error, bad_address, stack_overflow, abort };
using LlvmBreaker = void(const LlvmRequest& request, LlvmBreak how);

// kLlvmInterface (codegen/llvm_interface.h) of the build that made the library.
using LlvmInterface = const char*();
using LlvmVersion = const char*();

// The library's note (base/elf_note.h) that holds its kLlvmInterface and a zero, for whoever asks without opening it.
inline constexpr const char* kLlvmNoteOwner = "weft";
inline constexpr std::uint32_t kLlvmNoteType = 1;

inline constexpr const char* kLlvmInterfaceSymbol = "weft_llvm_interface";
inline constexpr const char* kLlvmVersionSymbol = "weft_llvm_version";
inline constexpr const char* kLlvmCompileSymbol = "weft_llvm_compile";
inline constexpr const char* kLlvmBreakSymbol = "weft_llvm_break";

}  // namespace weft
