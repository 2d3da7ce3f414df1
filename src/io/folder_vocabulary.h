#pragma once

// The vocabulary file of a folder: tokenizer.json, else a tokenizer.model, a tiktoken file or vocab.txt.

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

// The names of the files that hold a vocabulary or tokens of it, in the order in which they are looked for.
std::span<const std::string_view> vocabulary_file_names();

// `tokenizer_config` is tokenizer_config.json, if the folder has it. UserError if the folder has none of these files.
Vocabulary read_vocabulary_file(const VocabularyFolder& folder, const std::optional<Json>& tokenizer_config);

}  // namespace weft
