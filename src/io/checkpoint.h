#pragma once

// A model on disk: a GGUF file, or a Hugging Face folder with config.json and one or several safetensors files. All
// files are mapped and nothing is copied. A Tensor points into its file and keeps it mapped while the Tensor lives. The
// caller must not write to its bytes.

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
  // blk.0.attn_q.weight, model.layers.0.self_attn.q_proj.weight: as stored, but for names that io/text_config.h changes
  std::string name;
  Tensor tensor;
  std::string file;         // for messages
  std::string stored_name;  // in the file, if the name is another; else ""
};

// A tensor whose type is known but not its contents.
struct NamedMeta {
  std::string name;
  Meta meta;
};

struct CheckpointFile {
  std::string name;  // in the folder of the checkpoint
  std::int64_t bytes = 0;
  ContentHash hash;  // from hash_bytes

  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

// A handle: copies share the open files. Several threads may use it at once.
class Checkpoint {
 public:
  // Reads and checks all headers. UserError if nothing exists at the path, if it is neither a GGUF file nor a folder
  // with config.json and safetensors, and for each error in the headers.
  static Checkpoint open(const std::string& path);
  // The same, where the files of the model are parts of the file at `path`. The keys of `parts` are the names of the
  // model's files: those of a folder, or the one of a GGUF file.
  static Checkpoint open_parts(const std::string& path, const std::map<std::string, FilePart>& parts);

  // Opens the model with zeros as weights: no weight is read and none takes memory. A tensor of a single number is a
  // scale and holds 1. For a folder, only config.json is read; the path may also be such a file, which ends in .json,
  // by itself. `describe` gets the checkpoint without those tensors and returns the tensors to add to those that a GGUF
  // file has.
  static Checkpoint open_dummy(const std::string& path,
                               const std::function<std::vector<NamedMeta>(const Checkpoint&)>& describe);

  // Whether the path is a GGUF file or a folder with weight files, which open() takes, and not a config alone.
  // UserError if nothing exists at the path.
  static bool has_weights(const std::string& path);

  const std::string& path() const;
  bool is_gguf() const;
  bool is_dummy() const;
  // Bytes of all mapped files.
  std::int64_t file_bytes() const;

  // The files that define the model: the GGUF files, or config.json, hf_quant_config.json if the config takes its
  // quantization from there, and the weight files. Reads all bytes of the weight files for the hashes.
  std::vector<CheckpointFile> files() const;
  // The same files in the same order, followed by the other files of a folder that are read: the index and
  // text_names().
  std::vector<ModelFile> all_files() const;
  // The existing files of a folder, other than config.json, that define how it reads, writes and samples text. Those
  // of a subfolder have its name before theirs: additional_chat_templates/tool_use.jinja.
  std::vector<std::string> text_names() const;

  // May be unknown to Weft. The architecture's file in src/models has the facts that config() needs.
  const std::string& architecture() const;
  // "LlamaForCausalLM": the first of config.json's architectures; "" if there is none, and for a GGUF file.
  const std::string& architecture_class() const;
  // UserErrors as in model_config.h.
  ModelConfig config(const ArchitectureFacts& facts) const;
  // Reads generation_config.json. All fields are absent for a GGUF file and for a folder without that file. Keys in
  // `overridden` are not read.
  GenerationConfig generation_config(std::span<const std::string_view> overridden = {}) const;

  // Sentences about existing files that are not read because others take precedence.
  const std::vector<std::string>& notes() const;

  // In the order of the files.
  const std::vector<TensorEntry>& tensors() const;
  // Null when there is none.
  const TensorEntry* find(std::string_view name) const;
  // UserError that names the tensor when there is none.
  const Tensor& tensor(std::string_view name) const;

  // The tokenizer, from the metadata of a GGUF file or from a file of a folder (io/folder_vocabulary.h). For the
  // latter, tokenizer_config.json, config.json and generation_config.json name the beginning, padding and end tokens.
  Vocabulary vocabulary() const;
  // Whether a folder has a vocabulary file; always true for a GGUF file.
  bool has_vocabulary() const;
  // The chat template with this name; nullopt if there is none. A folder has it in chat_template.jinja or, with another
  // name than "default", in additional_chat_templates/NAME.jinja, else in chat_template of tokenizer_config.json, else
  // in chat_template.json.
  std::optional<std::string> chat_template(std::string_view name = "default") const;
  // The names of all chat templates other than "default", sorted.
  std::vector<std::string> chat_template_names() const;

  // The metadata of a GGUF file; InternalError for a folder.
  const Gguf& gguf() const;
  // The text of a file in the folder; nullopt if there is none. InternalError for a GGUF file.
  std::optional<std::string> folder_file(std::string_view name) const;

  // The tensors of a safetensors file in the folder, which are not among tensors(): those of a module after the model.
  // UserError if there is no such file. InternalError for a GGUF file.
  std::vector<TensorEntry> tensors_of_file(const std::string& name) const;

  // Hints to the system about the pages of the files. will_need: the pages are read soon. drop_pages: the pages stop
  // counting as memory of this process (once weights are packed); the next access reads them from disk again.
  void will_need() const;
  void drop_pages() const;
  void drop_pages(const TensorEntry& entry) const;

 private:
  struct Contents;
  explicit Checkpoint(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  const ModelFiles& source() const;
  std::shared_ptr<const Contents> contents_;
};

}  // namespace weft
