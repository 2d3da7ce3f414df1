#pragma once

// A model on disk, whichever way it is stored: a GGUF file, or a Hugging Face folder with config.json and safetensors
// in one file or several. Everything is mapped, nothing copied: a Tensor looks into the file, and keeps it mapped for
// as long as the Tensor lives. Its bytes must not be written to.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"
#include "io/generation_config.h"
#include "io/gguf.h"
#include "io/model_config.h"
#include "io/model_files.h"
#include "io/vocabulary.h"
#include "tensor/tensor.h"

namespace weft {

struct TensorEntry {
  std::string name;  // as stored: blk.0.attn_q.weight, model.layers.0.self_attn.q_proj.weight
  Tensor tensor;
  std::string file;  // for messages
};

// A tensor of which only the type is known.
struct NamedMeta {
  std::string name;
  Meta meta;
};

struct CheckpointFile {
  std::string name;  // in the folder of the checkpoint
  std::int64_t bytes = 0;
  ContentHash hash;  // as hash_bytes gives it

  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

// A handle; copies share what was opened. May be used from several threads.
class Checkpoint {
 public:
  // Reads and checks all headers. UserError when there is nothing at the path, when it is neither a GGUF file nor a
  // folder with config.json and safetensors, and for whatever is wrong with the headers.
  static Checkpoint open(const std::string& path);
  // The same of parts of the file at the path, by the names of the model's files: those of a folder, or a GGUF file's.
  static Checkpoint open_parts(const std::string& path, const std::map<std::string, FilePart>& parts);

  // The model with zeros for weights, of which none is read and none takes memory; a tensor of a single number, which
  // is a scale, holds 1. Of a folder only config.json is read: `describe` is given it, without tensors, and says which
  // there are besides those that a GGUF file has.
  static Checkpoint open_dummy(const std::string& path,
                               const std::function<std::vector<NamedMeta>(const Checkpoint&)>& describe);

  const std::string& path() const;
  bool is_gguf() const;
  bool is_dummy() const;
  // Bytes of all mapped files.
  std::int64_t file_bytes() const;

  // What the model is: the GGUF file, or config.json and the files of the weights. Reads all of them.
  std::vector<CheckpointFile> files() const;
  // Those, in this order, and all others that are read of a folder: the index and text_names().
  std::vector<ModelFile> all_files() const;
  // The files of a folder, besides config.json, that say how it reads, writes and samples text: those that there are.
  std::vector<std::string> text_names() const;

  // May be one that Weft does not know; its file in src/models has the facts that config() is read by.
  const std::string& architecture() const;
  // UserError as model_config.h says.
  ModelConfig config(const ArchitectureFacts& facts) const;
  // Of generation_config.json; all absent for a GGUF file and a folder without one. Keys of `overridden` are not read.
  GenerationConfig generation_config(std::span<const std::string_view> overridden = {}) const;

  // Sentences on files that are there and not read in favour of others.
  const std::vector<std::string>& notes() const;

  // In the order of the files.
  const std::vector<TensorEntry>& tensors() const;
  // Null when there is none.
  const TensorEntry* find(std::string_view name) const;
  // UserError that names the tensor when there is none.
  const Tensor& tensor(std::string_view name) const;

  // The tokenizer: from the metadata of a GGUF file; from tokenizer.json, with beginning, padding and end named by
  // tokenizer_config.json, config.json and generation_config.json.
  Vocabulary vocabulary() const;
  // Whether a folder has tokenizer.json; yes of a GGUF file.
  bool has_vocabulary() const;
  // The chat template of this name; nothing when there is none. A folder's is chat_template.jinja, else chat_template
  // of tokenizer_config.json, else chat_template.json's.
  std::optional<std::string> chat_template(std::string_view name = "default") const;
  // The names of all others, sorted.
  std::vector<std::string> chat_template_names() const;

  // The metadata of a GGUF file; InternalError for a folder.
  const Gguf& gguf() const;
  // The text of a file in the folder; nothing when there is none. InternalError for a GGUF file.
  std::optional<std::string> folder_file(std::string_view name) const;

  // Hints to the system about the pages of the files: they are read soon; they no longer count as this process's
  // memory (once weights are packed), and come back from disk if touched again.
  void will_need() const;
  void drop_pages() const;
  void drop_pages(const TensorEntry& entry) const;

 private:
  struct Contents;
  explicit Checkpoint(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  std::shared_ptr<const Contents> contents_;
};

}  // namespace weft
