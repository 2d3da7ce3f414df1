#pragma once

// The files of a model by their names, wherever they lie: in a folder, or in parts of one file.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"

namespace weft {

struct ModelFile {
  std::string name;
  std::shared_ptr<const MappedFile> map;
  std::span<const std::byte> bytes;  // of the map, all or a part
};

class ModelFiles {
 public:
  // Nothing is looked at yet.
  explicit ModelFiles(std::string folder) : path_(std::move(folder)) {}
  // UserError where the file at the path cannot be mapped, or ends before a part does.
  ModelFiles(std::string path, const std::map<std::string, FilePart>& parts);

  // For messages; of a part as if the file that it is in were a folder.
  std::string path_of(std::string_view name) const;
  bool has(std::string_view name) const;
  // Nothing where there is none. UserErrors as those of read_file.
  std::optional<std::string> text(std::string_view name) const;
  // UserErrors as those of MappedFile.
  ModelFile map(std::string_view name) const;

 private:
  std::string path_;
  std::shared_ptr<const MappedFile> whole_;  // null of a folder
  std::map<std::string, FilePart, std::less<>> parts_;
};

}  // namespace weft
