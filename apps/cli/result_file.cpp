#include "apps/cli/result_file.h"

#include <filesystem>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace weft {
namespace {

[[noreturn]] void fail_write(const std::string& path, const char* flag, const std::string& reason) {
  fail_user("[{}] {} cannot be written: {}", flag, quote(path, 1000), reason);
}

// The folder in which a new file replaces `path`, as write_then_rename does it.
std::filesystem::path folder_to_write(std::filesystem::path path, FileKind kind) {
  if (kind == FileKind::regular) path = std::filesystem::canonical(path);
  return path.has_parent_path() ? path.parent_path() : ".";
}

}  // namespace

void check_can_write(const std::string& path, const char* flag) {
  const FileKind kind = file_status(path).kind;
  if (kind == FileKind::folder) fail_write(path, flag, "it is a folder");
  if (kind == FileKind::other) return;  // a pipe or a device, which is opened once
  std::string probe = folder_to_write(path, kind) / ".weft-XXXXXX";
  const int file = ::mkostemp(probe.data(), O_CLOEXEC);
  if (file < 0) fail_write(path, flag, system_error_text());
  ::close(file);
  ::unlink(probe.c_str());
}

void check_can_append(const std::string& path, const char* flag) {
  if (file_status(path).kind != FileKind::regular) return check_can_write(path, flag);
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) fail_write(path, flag, system_error_text());
  ::close(file);
}

}  // namespace weft
