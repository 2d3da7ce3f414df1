#include "cache/cache_files.h"

#include <algorithm>

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::string_view kEntryEnd = ".weft";

// Returns "" if the name is not that of an entry.
std::string hash_in_name(std::string_view name) {
  constexpr std::size_t kHashDigits = 32;
  if (name.size() != kHashDigits + kEntryEnd.size() || !name.ends_with(kEntryEnd)) return "";
  const std::string_view digits = name.substr(0, kHashDigits);
  const bool is_hash =
      std::all_of(digits.begin(), digits.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
  return is_hash ? std::string(digits) : "";
}

bool check_folder(const std::string& path, const FileStatus& status) {
  if (status.kind == FileKind::missing) return false;
  USER_CHECK(status.kind == FileKind::folder, "[{}] is not used: it is not a folder", quote(path, 1000));
  const std::string reason = distrust(status);
  USER_CHECK(reason.empty(), "[{}] is not used: {}", quote(path, 1000), reason);
  return true;
}

}  // namespace

std::string default_cache_root(const EnvironmentLookup& environment, const std::string& given) {
  return (given.empty() ? cache_folder(environment) : given) + "/compile";
}

std::string entry_folder(const std::string& root, std::string_view kind) { return fmt::format("{}/{}", root, kind); }

std::string entry_name(const ContentHash& hash) { return hash.hex() + std::string(kEntryEnd); }

bool is_of_this_user(const FileStatus& status) { return status.owner == ::geteuid(); }

std::string distrust(const FileStatus& status) {
  if (!is_of_this_user(status))
    return fmt::format(
        "it belongs to user {}, and this is user {}: it may contain machine code, so it must belong to this user",
        status.owner, ::geteuid());
  if ((status.mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("others can write to it (mode {:04o}), and it may contain machine code: chmod go-w it",
                       status.mode & 07777);
  return "";
}

bool is_usable_folder(const std::string& path, const FileSystem& file_system) {
  return check_folder(path, file_status(path, file_system));
}

void make_usable_folder(const std::string& path, const FileSystem& file_system) {
  if (is_usable_folder(path, file_system)) return;
  make_private_folder(path, file_system);
  // Another process may have created it first.
  USER_CHECK(is_usable_folder(path, file_system), "[{}] was removed as soon as it was made", quote(path, 1000));
}

std::vector<CacheFile> cache_files(const std::string& root, const FileSystem& file_system) {
  std::vector<CacheFile> files;
  if (!is_usable_folder(root, file_system)) return files;
  for (const std::string& kind : folder_names(root, file_system)) {
    const std::string folder = entry_folder(root, kind);
    if (!CacheKey::is_kind(kind) || !is_usable_folder(folder, file_system)) continue;
    for (const std::string& name : folder_names(folder, file_system)) {
      const std::string hash = hash_in_name(name);
      const bool temporary = is_temporary_name(name);
      if (hash.empty() && !temporary) continue;
      const std::string path = folder + "/" + name;
      const FileStatus status = file_status(path, file_system);
      // Other processes may remove files at the same time. A folder with the name of an entry prevents each store of
      // it.
      if (status.kind == FileKind::missing || (temporary && status.kind != FileKind::regular)) continue;
      files.push_back({temporary ? CacheFile::temporary : CacheFile::entry, kind, hash, path, status});
    }
  }
  return files;
}

}  // namespace weft
