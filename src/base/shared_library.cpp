#include "base/shared_library.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>

#include "base/first_time_work.h"

namespace weft {
namespace {

// Whether the file has all bytes that a load maps. True for a file that is not 64-bit ELF: dlopen refuses it.
bool has_all_segments(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return true;
  const bool is_elf = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
  if (!is_elf || header.e_phentsize != sizeof(Elf64_Phdr)) return true;
  std::error_code ignored;
  const std::uint64_t size = std::filesystem::file_size(path, ignored);
  const auto is_inside = [size](std::uint64_t offset, std::uint64_t bytes) {
    return offset <= size && bytes <= size - offset;
  };
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  const std::size_t bytes = segments.size() * sizeof(Elf64_Phdr);
  if (!is_inside(header.e_phoff, bytes)) return false;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  if (!file.read(reinterpret_cast<char*>(segments.data()), static_cast<std::streamsize>(bytes))) return false;
  return std::all_of(segments.begin(), segments.end(), [&](const Elf64_Phdr& segment) {
    return segment.p_type != PT_LOAD || is_inside(segment.p_offset, segment.p_filesz);
  });
}

// What dlopen does not check: it waits for a pipe's other end, and an access to a page after the end of a file ends the
// process (SIGBUS). "" if there is no such problem. Dlopen reports a missing file.
std::string problem_of_file(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) return "";
  if (!std::filesystem::is_regular_file(status)) return fmt::format("{} is not a regular file", path);
  if (!has_all_segments(path)) return fmt::format("{}: it ends before a part that its header names", path);
  return "";
}

}  // namespace

std::optional<SharedLibrary> SharedLibrary::open(const std::string& name, std::string& problem) {
  if (FirstTimeWork* work = FirstTimeScope::work()) work->begin(FirstTime::load, name);
  if (std::string refusal = name.find('/') == std::string::npos ? "" : problem_of_file(name); !refusal.empty()) {
    problem = std::move(refusal);
    return std::nullopt;
  }
  // RTLD_LOCAL: the symbols of this library must not replace those of another.
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary(name, handle);
  const char* words = dlerror();
  problem = words == nullptr ? "the loader gives no reason" : words;
  return std::nullopt;
}

void* SharedLibrary::find_address(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace weft
