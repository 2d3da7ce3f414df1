#include "codegen/row_compiler.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <fmt/core.h>
#include <malloc.h>

#include "base/elf_note.h"
#include "base/loaded_objects.h"
#include "base/shared_library.h"
#include "codegen/compile_rows.h"
#include "codegen/llvm_interface.h"

namespace weft {
namespace {

constexpr const char* kLibrary = "libweft_llvm.so";

// The folders where the loader searches the libraries of `holder`, the file that contains this code. If that was built
// with an installed Weft, Weft's folder is among them.
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

// A folder may contain the library of another Weft. Its build is read from a note in the file, because every start
// checks it but few starts compile and so load the library.
bool is_of_this_build(const std::string& path) {
  const std::string interface = note_of_file(path, kLlvmNoteOwner, kLlvmNoteType);
  return std::string_view(interface.c_str()) == kLlvmInterface;  // the note ends in a zero
}

// The path of the library; empty when there is none.
std::string find_library() {
  namespace fs = std::filesystem;
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&can_compile_rows), &here) == 0 || here.dli_fname == nullptr) return "";
  std::error_code error;
  // The name of a program may be relative to the folder where it was started.
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

// The pages that were loaded with the library, those of LLVM included.
std::atomic<const std::vector<UnchangedPages>*> pages_of_library = nullptr;

std::vector<UnchangedPages> without(const std::vector<UnchangedPages>& all, const std::vector<UnchangedPages>& known) {
  std::vector<UnchangedPages> rest;
  for (const UnchangedPages& part : all)
    if (std::none_of(known.begin(), known.end(), [&](const auto& other) { return other.data() == part.data(); }))
      rest.push_back(part);
  return rest;
}

RowCompiler open_row_compiler() {
  RowCompiler opened{.path = row_compiler_path()};
  if (opened.path.empty()) {
    opened.problem = fmt::format("{} is not installed", kLibrary);
    return opened;
  }
  const std::vector<UnchangedPages> before = unchanged_pages();
  const auto library = SharedLibrary::open(opened.path, opened.problem);
  if (!library) return opened;
  static const std::vector<UnchangedPages> came = without(unchanged_pages(), before);
  pages_of_library = &came;
  LlvmInterface* interface = nullptr;
  library->find(kLlvmInterfaceSymbol, interface, opened.problem);
  library->find(kLlvmVersionSymbol, opened.version, opened.problem);
  library->find(kLlvmCompileSymbol, opened.compile, opened.problem);
  if (opened.problem.empty() && std::string_view(interface()) != kLlvmInterface)
    opened.problem = fmt::format("{} is of another build", opened.path);
  return opened;
}

}  // namespace

const RowCompiler& row_compiler() {
  static const RowCompiler once = open_row_compiler();
  return once;
}

void return_row_compiler_memory() {
  const std::vector<UnchangedPages>* pages = pages_of_library;
  if (pages == nullptr) return;
  ::malloc_trim(0);
  drop_unchanged_pages(*pages);
}

const std::string& row_compiler_path() {
  static const std::string path = find_library();
  return path;
}

}  // namespace weft
