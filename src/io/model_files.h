#pragma once

// The files of a model by name. They are in a folder, or are parts of one file.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace weft {

struct ModelFile {
  std::string name;
  std::shared_ptr<const MappedFile> map;
  std::span<const std::byte> bytes;  // the whole map or a part of it
};

class ModelFiles {
 public:
  // Does not access the folder.
  explicit ModelFiles(std::string folder) : path_(std::move(folder)) {}
  // UserError if the file at the path cannot be mapped, or ends before a part does.
  ModelFiles(std::string path, const std::map<std::string, FilePart>& parts);

  // The path of a file for messages. For a part, the path treats the containing file as a folder.
  std::string path_of(std::string_view name) const;
  bool has(std::string_view name) const;
  // The names of the files that are directly in a subfolder, each after the subfolder's name and a slash, sorted. Empty
  // if there is no such subfolder.
  std::vector<std::string> names_in(std::string_view subfolder) const;
  // Nullopt if there is no such file. UserErrors as in read_file.
  std::optional<std::string> text(std::string_view name) const;
  // UserErrors as in MappedFile.
  ModelFile map(std::string_view name) const;

 private:
  std::string path_;
  std::shared_ptr<const MappedFile> whole_;  // null for a folder
  std::map<std::string, FilePart, std::less<>> parts_;
};

// The names of a folder's weights: of one file, or of the index of several.
struct WeightFiles {
  const char *whole, *index;
};
inline constexpr WeightFiles kSafetensors = {"model.safetensors", "model.safetensors.index.json"};
inline constexpr WeightFiles kPytorchFiles = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
// Those that are read: safetensors if the folder has them.
const WeightFiles& weight_files_in(const ModelFiles& files);
bool has_weight_files(const ModelFiles& files);

// An addition to the message about a folder without weights that are read: a clause that names another file in the
// folder, or "".
std::string hint_of_folder(const std::string& folder);

// UserError if the file is what git stores in place of a large one, which `git lfs pull` fetches.
void check_is_no_lfs_pointer(std::span<const std::byte> file, const std::string& where);

}  // namespace weft
