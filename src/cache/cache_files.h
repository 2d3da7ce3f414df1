#pragma once

// Where the files of a compile cache lie, and which may be trusted. An entry of key k is ROOT/<kind>/<hash>.weft. What
// has another name is never touched.
//
// An entry may be machine code, so a folder or file is used only if it belongs to the user who runs the process, root
// too, and nobody else can write to it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"
#include "base/environment.h"
#include "base/file_system.h"
#include "cache/cache_key.h"

namespace weft {

// `given`/compile, or compile in this user's cache folder where nothing is given. UserError if there is none.
std::string default_cache_root(const EnvironmentLookup& environment, const std::string& given = "");

std::string entry_folder(const std::string& root, std::string_view kind);
std::string entry_name(const ContentHash& hash);

bool is_of_this_user(const FileStatus& status);

// Why it may not be trusted, with what to do about it; "" if it may.
std::string distrust(const FileStatus& status);

// False if nothing is there. UserError for what is no folder or may not be trusted, DeviceError when the system fails.
bool is_usable_folder(const std::string& path, const FileSystem& file_system);
// Makes it where it is not there. The same errors.
void make_usable_folder(const std::string& path, const FileSystem& file_system);

struct CacheFile {
  enum Use : bool { entry, temporary };  // temporary: of a write that goes on, or of a killed process
  Use use;
  std::string kind;
  std::string hash;  // as its name says; of an entry only
  std::string path;
  FileStatus status;
};

// All files of the cache, by kind and name; none where there is no root. The errors of is_usable_folder.
std::vector<CacheFile> cache_files(const std::string& root, const FileSystem& file_system);

}  // namespace weft
