#include "io/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/files.h"
#include "base/sort.h"
#include "io/architecture_name.h"
#include "io/embedding_config.h"
#include "io/expert_config.h"
#include "io/gguf_split.h"
#include "io/latent_config.h"
#include "io/mlx_stacks.h"
#include "io/model_dtype.h"
#include "io/pytorch_file.h"
#include "io/safetensors.h"
#include "io/text_config.h"
#include "io/tied_head.h"
#include "io/weight_file.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kModelOptConfig = "hf_quant_config.json";

std::string last_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

template <class Bytes>
CheckpointFile described(const std::string& name, const Bytes& bytes) {
  return {name, static_cast<std::int64_t>(bytes.size()), hash_bytes(bytes)};
}

// Older converters wrote this matrix of one row as a vector.
std::vector<std::int64_t> matrix_shape(const GgufTensor& tensor) {
  std::vector<std::int64_t> shape = tensor.shape;
  if (shape.size() == 1 && tensor.name.ends_with(".ffn_gate_inp_shexp.weight")) shape.insert(shape.begin(), 1);
  return shape;
}

}  // namespace

struct Checkpoint::Contents {
  std::string path;
  std::string architecture;
  std::string architecture_class;
  ModelFiles source;
  std::optional<Gguf> gguf;                  // views of `files`
  std::string config_path;                   // if the path is a folder
  std::string config_text;                   // with the quantization_config of another file, if one is read
  std::vector<CheckpointFile> config_files;  // all that config_text was made from
  std::vector<WeightFile> files;
  bool is_dummy = false;
  std::vector<std::string> notes;
  std::vector<TensorEntry> tensors;
  std::map<std::string_view, const TensorEntry*> by_name;  // views of `tensors`, which must not grow after this

  Contents(std::string given, ModelFiles files) : path(std::move(given)), source(std::move(files)) {}
  void open_gguf(const std::string& name);
  void read_config(const std::string& name);
  void open_folder();
  void make_dummy(std::vector<NamedMeta> described);
  void add_weights(const std::string& name);
  void check_index(const std::map<std::string, std::string>& index) const;
  void name_as_language_model();
  void index_names();
};

void Checkpoint::Contents::open_gguf(const std::string& name) {
  const WeightFile given = weight_file(source.map(name));
  Gguf own = Gguf::parse(given.bytes, path);
  const std::vector<std::string> names = gguf_part_names(own, name);
  std::vector<Gguf> parts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_given = names[i] == name;
    const std::string part_path = is_given ? path : source.path_of(names[i]);
    USER_CHECK(source.has(names[i]), "[{}] wanted part {} of {}, {}, but it is not there", path, i + 1, names.size(),
               names[i]);
    files.push_back(is_given ? given : weight_file(source.map(names[i])));
    Gguf part = is_given ? std::move(own) : Gguf::parse(files[i].bytes, part_path);
    if (names.size() > 1) check_gguf_part(part, i, names.size());
    for (const auto& tensor : part.tensors())
      tensors.push_back({std::string(tensor.name),
                         tensor_in(files[i], tensor.dtype, matrix_shape(tensor), tensor.offset, tensor.bytes),
                         part_path});
    parts.push_back(std::move(part));
  }
  index_names();  // before the parts are joined, because its message names both files of a repeated tensor
  gguf = Gguf::of_parts(std::move(parts));
  if (names.size() > 1) check_gguf_part_tensors(*gguf, tensors.size());
  architecture = architecture_from_gguf(*gguf);
}

namespace {

std::vector<TensorEntry> entries_in(const WeightFile& file, const std::string& file_path) {
  const bool is_safetensors = file_path.ends_with(".safetensors");
  std::vector<TensorEntry> entries;
  for (auto& tensor :
       is_safetensors ? Safetensors::parse(file.bytes, file_path).tensors : parse_pytorch_file(file.bytes, file_path))
    entries.push_back(
        {std::move(tensor.name), tensor_in(file, tensor.dtype, tensor.shape, tensor.offset, tensor.bytes), file_path});
  return entries;
}

}  // namespace

void Checkpoint::Contents::add_weights(const std::string& name) {
  files.push_back(weight_file(source.map(name)));
  for (TensorEntry& entry : entries_in(files.back(), source.path_of(name))) tensors.push_back(std::move(entry));
}

void Checkpoint::Contents::check_index(const std::map<std::string, std::string>& index) const {
  for (const auto& [name, file] : index) {
    const auto at = by_name.find(name);
    USER_CHECK(at != by_name.end() && at->second->file == source.path_of(file),
               "[{}] the index has tensor {} in {}, but it is {}", path, name, file,
               at == by_name.end() ? "in none of the files" : "in " + at->second->file);
  }
}

void Checkpoint::Contents::read_config(const std::string& name) {
  config_path = source.path_of(name);
  auto text = source.text(name);
  USER_CHECK(text, "[{}] wanted a folder with {}, but it has none{}", path, name, hint_of_folder(path));
  config_text = std::move(*text);
  config_files.push_back(described(name, config_text));
  const Json language_model = text_config(parse_config_json(config_text, config_path), config_path);
  const JsonFields fields(language_model, config_path);
  architecture = architecture_of(fields);
  architecture_class = first_class_of(fields);
  const auto quantization = source.text(kModelOptConfig);
  if (!quantization || !add_modelopt_config(*quantization, source.path_of(kModelOptConfig), config_path, config_text))
    return;
  config_files.push_back(described(kModelOptConfig, *quantization));
  notes.push_back(fmt::format("[{}] {} is read as the quantization_config of {}", path, kModelOptConfig, name));
}

void Checkpoint::Contents::open_folder() {
  read_config(kConfig);
  const auto& [whole, index_name] = weight_files_in(source);
  const auto index_text = source.text(index_name);
  if (source.has(whole)) {
    if (index_text && !names_only(*index_text, whole))
      notes.push_back(fmt::format("[{}] has {} and {}: {} is read", path, whole, index_name, whole));
    add_weights(whole);
    index_names();
    name_as_language_model();
    return;
  }
  USER_CHECK(index_text, "[{}] wanted a folder with {} or {}, or an index of several such files, but it has none{}",
             path, kSafetensors.whole, kPytorchFiles.whole, hint_of_folder(path));
  const auto index = parse_safetensors_index(*index_text, source.path_of(index_name));
  std::vector<std::string> names;
  for (const auto& [tensor, file] : index) names.push_back(file);
  sort_without_repeats(names);
  for (const auto& name : names) {
    USER_CHECK(source.has(name), "[{}] wanted {}, which {} names, but there is no such file", path, name, index_name);
    add_weights(name);
  }
  index_names();
  check_index(index);
  name_as_language_model();
}

// The rest of the program knows the names of folders that have the language model alone, with its head.
void Checkpoint::Contents::name_as_language_model() {
  const std::string_view module = missing_module([&](std::string_view name) { return by_name.contains(name); });
  bool has_changed = split_stacks(tensors);
  for (auto& entry : tensors) {
    std::string name = name_in_language_model(entry.name);
    if (!name.starts_with(module) && !name.starts_with("lm_head.")) name = std::string(module) + name;
    if (name == entry.name) continue;  // by_name has views of it
    entry.stored_name = std::exchange(entry.name, std::move(name));
    has_changed = true;
  }
  if (!has_changed) return;
  by_name.clear();
  index_names();
}

void Checkpoint::Contents::index_names() {
  for (const auto& entry : tensors) {
    const auto [at, is_new] = by_name.emplace(entry.name, &entry);
    USER_CHECK(is_new, "[{}] tensor {} is also in {}", entry.file, entry.name, at->second->file);
  }
}

// Replaces the contents of the files by dummy tensors of the described types.
void Checkpoint::Contents::make_dummy(std::vector<NamedMeta> described) {
  is_dummy = true;
  for (NamedMeta& one : described)
    tensors.push_back({std::move(one.name), Tensor{.meta = std::move(one.meta)}, config_path});
  by_name.clear();
  index_names();
  std::int64_t most_bytes = 0;
  for (const auto& entry : tensors) most_bytes = std::max(most_bytes, entry.tensor.meta.bytes().number());
  const auto zeros = Storage::zeros(most_bytes);
  for (auto& entry : tensors) {
    // GGUF files keep the divisors of the rope frequencies among the tensors, but they are a part of the config.
    if (entry.name == kFrequencyFactors || entry.name == kLongFactors || entry.name == kShortFactors) continue;
    const bool is_number = element_count(entry.tensor.meta.shape) == Dim(1);
    entry.tensor.storage = is_number ? Storage::allocate(entry.tensor.meta.bytes().number()) : zeros;
    entry.tensor.byte_offset = 0;
    if (is_number) store_float(entry.tensor.meta.dtype, entry.tensor.data(), 0, 1);
  }
}

namespace {

bool is_folder(const std::string& path) {
  const FileKind kind = file_status(path).kind;
  USER_CHECK(kind != FileKind::missing, "[{}] wanted a GGUF file or a model folder, but there is nothing", path);
  USER_CHECK(kind == FileKind::folder || !path.ends_with(".safetensors"),
             "[{}] wanted a GGUF file or a model folder; name the folder that holds this file and its config.json",
             path);
  return kind == FileKind::folder;
}

// Whether the path is a file like config.json.
bool is_config(const std::string& path) { return path.ends_with(".json") && !is_folder(path); }

// Returns the files of the checkpoint's folder: the path itself, or the folder that contains the file.
ModelFiles files_at(const std::string& path) {
  return ModelFiles(is_folder(path) ? path : std::filesystem::path(path).parent_path().string());
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& path) {
  USER_CHECK(!is_config(path),
             "[{}] wanted a GGUF file or a model folder; a config alone is enough with --load-format dummy", path);
  auto contents = std::make_shared<Contents>(path, files_at(path));
  if (is_folder(path)) {
    contents->open_folder();
  } else {
    contents->open_gguf(last_of(path));
  }
  return Checkpoint(std::move(contents));
}

Checkpoint Checkpoint::open_dummy(const std::string& path,
                                  const std::function<std::vector<NamedMeta>(const Checkpoint&)>& describe) {
  auto contents = std::make_shared<Contents>(path, files_at(path));
  if (is_folder(path) || is_config(path)) {
    contents->read_config(is_folder(path) ? kConfig : last_of(path));
  } else {
    contents->open_gguf(last_of(path));
  }
  Checkpoint checkpoint(contents);
  std::vector<NamedMeta> described = describe(checkpoint);
  contents->make_dummy(std::move(described));
  return checkpoint;
}

bool Checkpoint::has_weights(const std::string& path) {
  if (!is_folder(path)) return !is_config(path);
  const ModelFiles files(path);
  return has_weight_files(files);
}

Checkpoint Checkpoint::open_parts(const std::string& path, const std::map<std::string, FilePart>& parts) {
  CHECK(!parts.empty(), "[{}] no parts of it are a model", path);
  auto contents = std::make_shared<Contents>(path, ModelFiles(path, parts));
  if (parts.contains(kConfig)) {
    contents->open_folder();
  } else {
    contents->open_gguf(parts.begin()->first);
  }
  return Checkpoint(std::move(contents));
}

const std::string& Checkpoint::path() const { return contents_->path; }
bool Checkpoint::is_gguf() const { return contents_->gguf.has_value(); }
bool Checkpoint::is_dummy() const { return contents_->is_dummy; }
const std::string& Checkpoint::architecture() const { return contents_->architecture; }
const std::string& Checkpoint::architecture_class() const { return contents_->architecture_class; }
const std::vector<std::string>& Checkpoint::notes() const { return contents_->notes; }
const std::vector<TensorEntry>& Checkpoint::tensors() const { return contents_->tensors; }

std::int64_t Checkpoint::file_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& file : contents_->files) bytes += static_cast<std::int64_t>(file.bytes.size());
  return bytes;
}

std::vector<CheckpointFile> Checkpoint::files() const {
  std::vector<CheckpointFile> files = contents_->config_files;
  for (const auto& file : contents_->files) files.push_back(described(file.name, file.bytes));
  return files;
}

std::vector<ModelFile> Checkpoint::all_files() const {
  std::vector<ModelFile> files;
  for (const auto& file : contents_->config_files) files.push_back(contents_->source.map(file.name));
  files.insert(files.end(), contents_->files.begin(), contents_->files.end());
  if (is_gguf()) return files;
  const auto& [whole, index] = weight_files_in(contents_->source);
  if (!contents_->source.has(whole)) files.push_back(contents_->source.map(index));
  for (const std::string& name : text_names()) files.push_back(contents_->source.map(name));
  return files;
}

ModelConfig Checkpoint::config(const ArchitectureFacts& facts) const {
  if (is_gguf()) return model_config_from_gguf(*contents_->gguf, facts);
  ModelConfig config = model_config_from_json(contents_->config_text, contents_->config_path, facts);
  const auto find_tensor = [&](const std::string& name) {
    const TensorEntry* entry = find(name);
    return entry == nullptr ? nullptr : &entry->tensor.meta;
  };
  const auto has_tensor = [&](const std::string& name) { return find(name) != nullptr; };
  read_expert_layout(find_tensor, config);
  read_latent_layout(find_tensor, config);
  if (const auto longest = longest_text_of(*this)) config.context_length = std::min(config.context_length, *longest);
  if (!config.has_dtype) take_dtype_of_tensors(*this, facts.embedding, config);
  untie_if_differs(*this, facts.embedding, config);
  if (config.quantization) {
    std::vector<std::string> names;
    for (const TensorEntry& entry : tensors()) names.push_back(entry.name);
    find_quantized_modules(has_tensor, names, *config.quantization);
  }
  return config;
}

GenerationConfig Checkpoint::generation_config(std::span<const std::string_view> overridden) const {
  if (is_gguf()) return {};
  const auto text = folder_file("generation_config.json");
  if (!text) return {};
  return generation_config_from_json(*text, contents_->source.path_of("generation_config.json"), overridden);
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

const ModelFiles& Checkpoint::source() const { return contents_->source; }

std::optional<std::string> Checkpoint::folder_file(std::string_view name) const {
  CHECK(!is_gguf(), "[{}] is a GGUF file, not a folder", path());
  return contents_->source.text(name);
}

std::vector<TensorEntry> Checkpoint::tensors_of_file(const std::string& name) const {
  CHECK(!is_gguf(), "[{}] is a GGUF file, not a folder", path());
  USER_CHECK(contents_->source.has(name), "[{}] wanted {}, but there is no such file", path(), name);
  return entries_in(weight_file(contents_->source.map(name)), contents_->source.path_of(name));
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
