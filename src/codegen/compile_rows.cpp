#include "codegen/compile_rows.h"

#include <filesystem>

#include <fmt/core.h>

#include "codegen/llvm_interface.h"
#include "codegen/row_compiler.h"

namespace weft {

bool can_compile_rows() { return !row_compiler_path().empty(); }

std::vector<std::byte> compile_rows(const RowProgram& program, CpuFeatures features, std::string& problem,
                                    const std::string& dump_folder, const std::string& graph) {
  const RowCompiler& compiler = row_compiler();
  std::vector<std::byte> object;
  if (!compiler.problem.empty()) {
    problem = compiler.problem;
  } else {
    std::error_code ignored;
    const std::string folder =
        dump_folder.empty() ? std::filesystem::temp_directory_path(ignored).string() : dump_folder;
    if (!compiler.compile({program, features, folder, graph}, object, problem)) object.clear();
  }
  return object;
}

std::string_view row_emitter_hash() { return kLlvmInterface; }
std::string_view row_emitter_llvm() { return kLlvmVersion; }

std::string row_compiler_text() {
  const RowCompiler& compiler = row_compiler();
  return compiler.problem.empty() ? fmt::format("LLVM {}", compiler.version()) : "none: " + compiler.problem;
}

}  // namespace weft
