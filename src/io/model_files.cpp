#include "io/model_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace weft {
namespace {

constexpr std::size_t kLongestText = std::size_t{256} << 20;  // the largest is tokenizer.json, with tens of MB

}  // namespace

ModelFiles::ModelFiles(std::string path, const std::map<std::string, FilePart>& parts)
    : path_(std::move(path)), whole_(std::make_shared<const MappedFile>(path_)), parts_(parts.begin(), parts.end()) {
  for (const auto& [name, part] : parts_)
    USER_CHECK(part.offset <= whole_->size() && part.bytes <= whole_->size() - part.offset,
               "[{}] wanted {} bytes from byte {} on, but it has {}", path_of(name), part.bytes, part.offset,
               whole_->size());
}

std::string ModelFiles::path_of(std::string_view name) const { return (std::filesystem::path(path_) / name).string(); }

bool ModelFiles::has(std::string_view name) const {
  if (whole_ != nullptr) return parts_.contains(name);
  return file_status(path_of(name)).kind != FileKind::missing;
}

std::vector<std::string> ModelFiles::names_in(std::string_view subfolder) const {
  const std::string prefix = std::string(subfolder) + "/", path = path_of(subfolder);
  std::vector<std::string> names;
  if (whole_ == nullptr && file_status(path).kind == FileKind::folder)
    for (const std::string& name : folder_names(path)) names.push_back(prefix + name);
  // A longer path from a damaged file may contain "..", which would be another folder.
  for (const auto& [name, part] : parts_)
    if (name.starts_with(prefix) && name.find('/', prefix.size()) == std::string::npos) names.push_back(name);
  return names;
}

std::optional<std::string> ModelFiles::text(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  if (whole_ == nullptr) {
    const std::string path = path_of(name);
    // Checked before opening, which would wait for the other end of a pipe.
    USER_CHECK(file_status(path).kind != FileKind::other, "[{}] wanted a regular file, but it is a device or pipe",
               path);
    return read_file(path, kLongestText);
  }
  const ModelFile part = map(name);
  return std::string(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
}

ModelFile ModelFiles::map(std::string_view name) const {
  if (whole_ == nullptr) {
    const auto file = std::make_shared<const MappedFile>(path_of(name));
    return {.name = std::string(name), .map = file, .bytes = file->bytes()};
  }
  const auto part = parts_.find(name);
  USER_CHECK(part != parts_.end(), "[{}] is not there", path_of(name));
  return {
      .name = part->first, .map = whole_, .bytes = whole_->bytes().subspan(part->second.offset, part->second.bytes)};
}

namespace {

bool is_in(const WeightFiles& weights, const ModelFiles& files) {
  return files.has(weights.whole) || files.has(weights.index);
}

}  // namespace

const WeightFiles& weight_files_in(const ModelFiles& files) {
  return is_in(kSafetensors, files) ? kSafetensors : kPytorchFiles;
}

bool has_weight_files(const ModelFiles& files) { return is_in(kSafetensors, files) || is_in(kPytorchFiles, files); }

std::string hint_of_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  const auto has = [&](std::string_view name) { return std::binary_search(names.begin(), names.end(), name); };
  if (has("adapter_config.json")) return "; it is a LoRA adapter: name its model, and the adapter with --lora";
  if (has("snapshots") && has("refs")) return "; it is of the hub's cache, whose models are named USER/REPO";
  if (has("params.json")) return "; params.json is of a format that is not read: wanted the one of Hugging Face";
  for (const auto& name : names)
    if (name.ends_with(".gguf")) return "; name the file " + name + " itself to use it";
  for (const auto& name : names)
    if (name.starts_with("pytorch_model-")) return "; " + name + " is one of several files, whose index is missing";
  for (const auto& name : names)
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth"))
      return "; " + name + " is in a format that is not read";
  return "";
}

void check_is_no_lfs_pointer(std::span<const std::byte> file, const std::string& where) {
  constexpr std::string_view kBeginning = "version https://git-lfs";
  const bool is_pointer =
      file.size() >= kBeginning.size() && std::memcmp(file.data(), kBeginning.data(), kBeginning.size()) == 0;
  USER_CHECK(!is_pointer, "[{}] is a pointer of Git LFS in place of the file: git lfs pull fetches it", where);
}

}  // namespace weft
