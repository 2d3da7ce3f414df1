#pragma once

// The files of a compile cache: their paths, and which of them may be trusted. The entry of key k is
// ROOT/<kind>/<hash>.weft. Files with other names are never touched.
//
// An entry may be machine code, so a folder or file is used only if it belongs to the user who runs the process (root
// too) and no one else can write to it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"
#include "base/environment.h"
#include "base/file_system.h"
#include "cache/cache_key.h"

namespace weft {

// `given`/compile, or the folder compile in this user's cache folder where `given` is empty. UserError if the user has
// no cache folder.
std::string default_cache_root(const EnvironmentLookup& environment, const std::string& given = "");

std::string entry_folder(const std::string& root, std::string_view kind);
std::string entry_name(const ContentHash& hash);

bool is_of_this_user(const FileStatus& status);

// Why a file or folder may not be trusted, and how to fix that; "" if it may be trusted.
std::string distrust(const FileStatus& status);

// False if the path does not exist. UserError if it is no folder or may not be trusted; DeviceError when the system
// fails.
bool is_usable_folder(const std::string& path, const FileSystem& file_system);
// Creates the folder if it does not exist. Throws the same errors.
void make_usable_folder(const std::string& path, const FileSystem& file_system);

struct CacheFile {
  enum Use : bool { entry, temporary };  // temporary: of a running write, or of a killed process
  Use use;
  std::string kind;
  std::string hash;  // from the file's name; for entries only
  std::string path;
  FileStatus status;
};

// All files of the cache, sorted by kind and name; empty where the root does not exist. What has the name of an entry
// is an entry, also if it is a folder. Throws the errors of is_usable_folder.
std::vector<CacheFile> cache_files(const std::string& root, const FileSystem& file_system);

}  // namespace weft
