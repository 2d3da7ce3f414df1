#include "codegen/compile_rows.h"

#include <cstddef>
#include <filesystem>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/files.h"
#include "base/shared_library.h"
#include "codegen/llvm_interface.h"
#include "codegen/llvm_library.h"

namespace weft {
namespace {

constexpr const char* kLibrary = "libweft_llvm.so";

// The folders where the loader looks for the libraries of what holds this code: what was built with an installed Weft
// has its folder among them.
std::vector<std::string> loader_folders(const char* holder) {
  void* program = ::dlopen(holder, RTLD_LAZY | RTLD_NOLOAD);
  if (program == nullptr) program = ::dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo counts{};
  if (program == nullptr || ::dlinfo(program, RTLD_DI_SERINFOSIZE, &counts) != 0) return {};
  std::vector<std::max_align_t> memory(counts.dls_size / sizeof(std::max_align_t) + 1);
  auto* found = new (memory.data()) Dl_serinfo(counts);
  if (::dlinfo(program, RTLD_DI_SERINFO, found) != 0) return {};
  const std::span<Dl_serpath> paths(found->dls_serpath, found->dls_cnt);
  std::vector<std::string> folders;
  for (const Dl_serpath& path : paths) folders.emplace_back(path.dls_name);
  return folders;
}

// Another Weft's library may lie there, too. It says of which build it is, in its text.
bool is_of_this_build(const std::string& path) {
  constexpr std::size_t kMostBytes = 64u << 20;
  try {
    return read_file(path, kMostBytes).find(kLlvmInterface) != std::string::npos;
  } catch (const UserError&) {
    return false;
  }
}

// The path of the library; empty when there is none.
std::string find_library() {
  namespace fs = std::filesystem;
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&can_compile_rows), &here) == 0 || here.dli_fname == nullptr) return "";
  std::error_code error;
  // A program's own name may be relative to where it was started.
  fs::path file = fs::canonical(here.dli_fname, error);
  if (error) file = fs::canonical("/proc/self/exe", error);
  if (error) return "";
  const fs::path folder = file.parent_path();
  for (const fs::path& own : {folder, folder.parent_path(), folder.parent_path() / "lib"})
    if (fs::exists(own / kLibrary, error)) return own / kLibrary;
  for (const fs::path other : loader_folders(here.dli_fname))
    if (fs::exists(other / kLibrary, error) && is_of_this_build(other / kLibrary)) return other / kLibrary;
  return "";
}

struct RowCompiler {
  LlvmCompile* compile = nullptr;
  LlvmVersion* version = nullptr;
  std::string problem;
};

RowCompiler open_row_compiler() {
  RowCompiler opened;
  const std::string& path = row_compiler_path();
  if (path.empty()) {
    opened.problem = fmt::format("{} is not installed", kLibrary);
    return opened;
  }
  const auto library = SharedLibrary::open(path, opened.problem);
  if (!library) return opened;
  LlvmInterface* interface = nullptr;
  library->find(kLlvmInterfaceSymbol, interface, opened.problem);
  library->find(kLlvmVersionSymbol, opened.version, opened.problem);
  library->find(kLlvmCompileSymbol, opened.compile, opened.problem);
  if (opened.problem.empty() && std::string_view(interface()) != kLlvmInterface)
    opened.problem = fmt::format("{} is of another build", path);
  return opened;
}

// Once for the process, as the loader has it.
const RowCompiler& row_compiler() {
  static const RowCompiler once = open_row_compiler();
  return once;
}

}  // namespace

const std::string& row_compiler_path() {
  static const std::string path = find_library();
  return path;
}

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
