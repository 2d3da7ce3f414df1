#pragma once

// The vocabulary of a folder: that of tokenizer.json, else of a tokenizer.model, a tiktoken file, vocab.txt, or
// vocab.json with merges.txt.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "io/vocabulary.h"

namespace weft {

struct VocabularyFolder {
  std::string path;
  std::string architecture;
  std::function<std::optional<std::string>(std::string_view name)> file;  // nullopt if there is none
};

struct FolderVocabulary {
  Vocabulary vocabulary;
  // tokenizer_config.json, if the folder has it. Next to vocab.json it is never absent: tokens that it does not name
  // have the names that special_tokens_map.json gives, or those of transformers.
  std::optional<Json> tokenizer_config;
};

// The names of the files that hold a vocabulary or tokens of it, in the order in which they are looked for.
std::span<const std::string_view> vocabulary_file_names();

// UserError if the folder has none of these files.
FolderVocabulary read_vocabulary_file(const VocabularyFolder& folder);

}  // namespace weft
