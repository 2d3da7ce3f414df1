#include "quantize/output_folder.h"

#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace weft {

void check_output_folder(const std::string& path, const FileSystem& file_system) {
  const FileKind kind = file_status(path, file_system).kind;
  if (kind == FileKind::missing) return;
  USER_CHECK(kind == FileKind::folder, "[-o] must be a new or empty folder, but {} is a file", quote(path, 1000));
  const std::vector<std::string> names = folder_names(path, file_system);
  USER_CHECK(names.empty(), "[-o] must be a new or empty folder, but {} has {}", quote(path, 1000),
             quote(names.front(), 1000));
}

OutputFolder::OutputFolder(std::string path, const FileSystem& file_system)
    : path_(std::move(path)), file_system_(file_system) {
  check_output_folder(path_, file_system_);
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;  // a folder stays if another process has written into it
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) std::filesystem::remove(made->path, ignored);
}

void OutputFolder::write(const std::string& name, std::span<const std::byte> bytes) {
  const std::filesystem::path path = std::filesystem::path(path_) / name;
  make_folder(path.parent_path());
  write_then_rename(path.string(), bytes, file_system_);
  made_.emplace_back(path.string());
}

void OutputFolder::write(const std::string& name, std::string_view text) {
  write(name, std::as_bytes(std::span(text)));
}

void OutputFolder::make_folder(const std::filesystem::path& folder) {
  if (folder.empty() || file_status(folder.string(), file_system_).kind != FileKind::missing) return;
  make_folder(folder.parent_path());
  make_folders(folder.string(), file_system_);
  made_.emplace_back(folder.string());
}

}  // namespace weft
