#pragma once

// How the embedding of a text is made of a model's final hidden states, as a checkpoint of an embedding model states
// it: modules.json of sentence-transformers and the config.json of its Pooling, or pooling_type of a GGUF file.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weft {

class Checkpoint;

// Of the hidden states of all tokens: the last one, their mean, or the first one (that of [CLS]).
enum class Pooling : std::uint8_t { last, mean, cls };

// llama.cpp's words. UserError that names `[what]` for another one.
Pooling pooling_from_text(std::string_view text, const std::string& what);
std::string_view pooling_text(Pooling pooling);

// A module of modules.json, of which the first is the model: the class of its type, and its folder.
struct SentenceModule {
  std::string name, folder;
  std::string path(const char* file) const { return folder.empty() ? std::string(file) : folder + "/" + file; }
};
// Nullopt where the checkpoint states none, as those that generate text. UserError for a pooling that is not in the
// list, and for a module after it other than Dense and Normalize, since the embeddings would be others.
std::optional<Pooling> pooling_of(const Checkpoint& checkpoint, std::span<const SentenceModule> modules);

// The longest text that a folder of sentence-transformers states, in tokens; nullopt where it states none.
std::optional<std::int64_t> longest_text_of(const Checkpoint& checkpoint);

// Empty for a folder without the list, and for a GGUF file.
std::vector<SentenceModule> modules_of(const Checkpoint& checkpoint);
// The config.json of a module; UserError if there is none.
Json config_of(const Checkpoint& checkpoint, const SentenceModule& module);

}  // namespace weft
