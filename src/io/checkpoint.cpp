#include "io/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/sort.h"
#include "io/safetensors.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr std::size_t kLongestText = std::size_t{256} << 20;  // tokenizer.json, the largest, has tens of MB

struct File {
  std::shared_ptr<const MappedFile> map;
  std::span<const std::byte> bytes;  // of the map, all or a part
  std::shared_ptr<Storage> storage;  // over those

  std::size_t offset() const { return static_cast<std::size_t>(bytes.data() - map->bytes().data()); }
};

FileKind kind_of(const std::string& path) {
  FileStatus status;
  if (host_file_system().inspect(path, status) != 0) fail_user("[{}] cannot be opened: {}", path, system_error_text());
  return status.kind;
}

std::string join(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

File map_file(const std::string& path, std::optional<FilePart> part = {}) {
  File file;
  file.map = std::make_shared<const MappedFile>(path);
  file.bytes = file.map->bytes();
  if (part) {
    USER_CHECK(part->offset <= file.bytes.size() && part->bytes <= file.bytes.size() - part->offset,
               "[{}] wanted {} bytes from byte {} on, but it has {}", path, part->bytes, part->offset,
               file.bytes.size());
    file.bytes = file.bytes.subspan(part->offset, part->bytes);
  }
  // A Storage is writable by its type; that nobody writes to a checkpoint's tensors is part of their contract.
  auto* bytes = const_cast<std::byte*>(file.bytes.data());
  file.storage = Storage::view_of(bytes, static_cast<std::int64_t>(file.bytes.size()), file.map);
  return file;
}

// A view of the file or, where the file has the tensor at an address that its elements cannot be read from, a copy.
Tensor tensor_in(const File& file, DType dtype, const std::vector<std::int64_t>& shape, std::int64_t offset,
                 std::int64_t bytes) {
  Tensor tensor;
  tensor.meta = Meta::tensor(dtype, Shape(shape.begin(), shape.end()));
  tensor.storage = file.storage;
  tensor.byte_offset = offset;
  // Blocks begin with half floats.
  const std::int64_t alignment = is_block(dtype) ? 2 : dtype_info(dtype).block_bytes;
  if (bytes > 0 && offset % alignment != 0) {
    tensor.storage = Storage::allocate(bytes);
    tensor.byte_offset = 0;
    std::memcpy(tensor.data(), file.bytes.data() + offset, static_cast<std::size_t>(bytes));
  }
  return tensor;
}

// What a folder without usable weights has instead, for the message: "", or a sentence with a space in front.
std::string folder_hint(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  for (const auto& name : names)
    if (name.ends_with(".gguf")) return "; name the file " + name + " itself to use it";
  for (const auto& name : names)
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth"))
      return "; " + name + " is in a format that is not read";
  return "";
}

}  // namespace

struct Checkpoint::Contents {
  std::string path;
  std::string architecture;
  std::optional<Gguf> gguf;  // views of files[0]
  std::string config_path;   // of a folder
  std::string config_text;
  std::vector<File> files;
  bool is_dummy = false;
  std::vector<TensorEntry> tensors;
  std::map<std::string_view, const TensorEntry*> by_name;  // views of `tensors`, which no longer grows

  mutable std::once_flag config_read;
  mutable ModelConfig config;

  void open_gguf(std::optional<FilePart> part = {});
  void read_folder_config();
  void open_folder();
  void make_dummy(std::vector<NamedMeta> described, const std::string& frequency_factors);
  void add_safetensors(const std::string& file_path);
  void check_index(const std::map<std::string, std::string>& index) const;
  void index_names();
};

void Checkpoint::Contents::open_gguf(std::optional<FilePart> part) {
  files.push_back(map_file(path, part));
  gguf = Gguf::parse(files[0].bytes, path);
  if (const auto parts = gguf->find_integer("split.count"))
    USER_CHECK(*parts <= 1, "[{}] is one of {} parts, which are not read; join them first (llama-gguf-split --merge)",
               path, *parts);
  architecture = architecture_from_gguf(*gguf);
  for (const auto& tensor : gguf->tensors())
    tensors.push_back(
        {std::string(tensor.name), tensor_in(files[0], tensor.dtype, tensor.shape, tensor.offset, tensor.bytes), path});
  index_names();
}

void Checkpoint::Contents::add_safetensors(const std::string& file_path) {
  files.push_back(map_file(file_path));
  const auto& file = files.back();
  for (auto& tensor : Safetensors::parse(file.bytes, file_path).tensors)
    tensors.push_back(
        {std::move(tensor.name), tensor_in(file, tensor.dtype, tensor.shape, tensor.offset, tensor.bytes), file_path});
}

void Checkpoint::Contents::check_index(const std::map<std::string, std::string>& index) const {
  for (const auto& [name, file] : index) {
    const auto at = by_name.find(name);
    USER_CHECK(at != by_name.end() && at->second->file == join(path, file),
               "[{}] the index has tensor {} in {}, but it is {}", path, name, file,
               at == by_name.end() ? "in none of the files" : "in " + at->second->file);
  }
}

void Checkpoint::Contents::read_folder_config() {
  config_path = join(path, "config.json");
  USER_CHECK(kind_of(config_path) != FileKind::missing, "[{}] wanted a folder with config.json, but it has none{}",
             path, folder_hint(path));
  config_text = read_file(config_path, kLongestText);
  architecture = architecture_from_json(config_text, config_path);
}

void Checkpoint::Contents::open_folder() {
  read_folder_config();
  const auto single = join(path, "model.safetensors");
  const auto index_path = join(path, "model.safetensors.index.json");
  if (kind_of(single) != FileKind::missing) {
    add_safetensors(single);
    index_names();
    return;
  }
  USER_CHECK(kind_of(index_path) != FileKind::missing,
             "[{}] wanted a folder with model.safetensors or model.safetensors.index.json, but it has neither{}", path,
             folder_hint(path));
  const auto index = parse_safetensors_index(read_file(index_path, kLongestText), index_path);
  std::vector<std::string> names;
  for (const auto& [tensor, file] : index) names.push_back(file);
  sort_without_repeats(names);
  for (const auto& name : names) add_safetensors(join(path, name));
  index_names();
  check_index(index);
}

void Checkpoint::Contents::index_names() {
  for (const auto& entry : tensors) {
    const auto [at, is_new] = by_name.emplace(entry.name, &entry);
    USER_CHECK(is_new, "[{}] tensor {} is also in {}", entry.file, entry.name, at->second->file);
  }
}

// In place of what the files hold.
void Checkpoint::Contents::make_dummy(std::vector<NamedMeta> described, const std::string& frequency_factors) {
  is_dummy = true;
  for (NamedMeta& one : described)
    tensors.push_back({std::move(one.name), Tensor{.meta = std::move(one.meta)}, config_path});
  by_name.clear();
  index_names();
  std::int64_t most_bytes = 0;
  for (const auto& entry : tensors) most_bytes = std::max(most_bytes, entry.tensor.meta.bytes().number());
  const auto zeros = Storage::zeros(most_bytes);
  for (auto& entry : tensors) {
    // What divides frequencies is a part of the config that GGUF files keep among the tensors.
    if (entry.name == frequency_factors) continue;
    const bool is_number = element_count(entry.tensor.meta.shape) == Dim(1);
    entry.tensor.storage = is_number ? Storage::allocate(entry.tensor.meta.bytes().number()) : zeros;
    entry.tensor.byte_offset = 0;
    if (is_number) store_float(entry.tensor.meta.dtype, entry.tensor.data(), 0, 1);
  }
}

namespace {

bool is_folder(const std::string& path) {
  const auto kind = kind_of(path);
  USER_CHECK(kind != FileKind::missing, "[{}] wanted a GGUF file or a model folder, but there is nothing", path);
  USER_CHECK(kind == FileKind::folder || !path.ends_with(".safetensors"),
             "[{}] wanted a GGUF file or a model folder; name the folder that holds this file and its config.json",
             path);
  return kind == FileKind::folder;
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& path) {
  auto contents = std::make_shared<Contents>();
  contents->path = path;
  if (is_folder(path)) {
    contents->open_folder();
  } else {
    contents->open_gguf();
  }
  return Checkpoint(std::move(contents));
}

Checkpoint Checkpoint::open_dummy(const std::string& path,
                                  const std::function<std::vector<NamedMeta>(const Checkpoint&)>& describe) {
  auto contents = std::make_shared<Contents>();
  contents->path = path;
  if (is_folder(path)) {
    contents->read_folder_config();
  } else {
    contents->open_gguf();
  }
  Checkpoint checkpoint(contents);
  std::vector<NamedMeta> described = describe(checkpoint);
  contents->make_dummy(std::move(described), checkpoint.config().rope.frequency_factors);
  return checkpoint;
}

Checkpoint Checkpoint::open_part(const std::string& path, FilePart part) {
  auto contents = std::make_shared<Contents>();
  contents->path = path;
  contents->open_gguf(part);
  return Checkpoint(std::move(contents));
}

std::span<const std::byte> Checkpoint::gguf_bytes() const {
  CHECK(is_gguf(), "[{}] is a folder of several files", path());
  return contents_->files[0].bytes;
}

const std::string& Checkpoint::path() const { return contents_->path; }
bool Checkpoint::is_gguf() const { return contents_->gguf.has_value(); }
bool Checkpoint::is_dummy() const { return contents_->is_dummy; }
const std::string& Checkpoint::architecture() const { return contents_->architecture; }
const std::vector<TensorEntry>& Checkpoint::tensors() const { return contents_->tensors; }

std::int64_t Checkpoint::file_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& file : contents_->files) bytes += static_cast<std::int64_t>(file.bytes.size());
  return bytes;
}

std::vector<CheckpointFile> Checkpoint::files() const {
  const auto name_of = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  std::vector<CheckpointFile> files;
  if (!is_gguf())
    files.push_back({name_of(contents_->config_path), static_cast<std::int64_t>(contents_->config_text.size()),
                     hash_bytes(contents_->config_text)});
  for (const auto& file : contents_->files)
    files.push_back({name_of(file.map->path()), static_cast<std::int64_t>(file.bytes.size()), hash_bytes(file.bytes)});
  return files;
}

const ModelConfig& Checkpoint::config() const {
  std::call_once(contents_->config_read, [this] {
    contents_->config = is_gguf() ? model_config_from_gguf(*contents_->gguf)
                                  : model_config_from_json(contents_->config_text, contents_->config_path);
  });
  return contents_->config;
}

GenerationConfig Checkpoint::generation_config() const {
  if (is_gguf()) return {};
  const auto text = folder_file("generation_config.json");
  if (!text) return {};
  return generation_config_from_json(*text, config().vocab_size, join(path(), "generation_config.json"));
}

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const auto at = contents_->by_name.find(name);
  return at == contents_->by_name.end() ? nullptr : at->second;
}

const Tensor& Checkpoint::tensor(std::string_view name) const {
  const auto* entry = find(name);
  USER_CHECK(entry != nullptr, "[{}] wanted tensor {}, but it is not among the {} there", path(), name,
             tensors().size());
  return entry->tensor;
}

const Gguf& Checkpoint::gguf() const {
  CHECK(is_gguf(), "[{}] is a folder and has no GGUF metadata", path());
  return *contents_->gguf;
}

std::optional<std::string> Checkpoint::folder_file(std::string_view name) const {
  CHECK(!is_gguf(), "[{}] is a GGUF file, not a folder", path());
  const auto file_path = join(path(), name);
  if (kind_of(file_path) == FileKind::missing) return std::nullopt;
  return read_file(file_path, kLongestText);
}

void Checkpoint::will_need() const {
  for (const auto& file : contents_->files) file.map->will_need(file.offset(), file.bytes.size());
}

void Checkpoint::drop_pages() const {
  for (const auto& file : contents_->files) file.map->drop(0, file.map->size());
}

void Checkpoint::drop_pages(const TensorEntry& entry) const {
  for (const auto& file : contents_->files)
    if (entry.tensor.storage == file.storage)
      file.map->drop(file.offset() + static_cast<std::size_t>(entry.tensor.byte_offset),
                     static_cast<std::size_t>(entry.tensor.meta.bytes().number()));
}

}  // namespace weft
