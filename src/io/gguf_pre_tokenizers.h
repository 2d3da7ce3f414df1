#pragma once

// How models with one value of tokenizer.ggml.pre split text, as one table.

#include <string>
#include <string_view>
#include <vector>

#include "io/normalizer.h"
#include "io/pre_tokenizer.h"

namespace weft {

struct GgufPreTokenizer {
  std::string name;
  std::vector<PreTokenizerStep> steps;
  std::vector<NormalizerStep> normalizer;
  bool ignore_merges = false;
  bool add_bos = false;
  bool byte_alphabet = true;
};

// Sorted by name.
const std::vector<GgufPreTokenizer>& gguf_pre_tokenizers();

// "" means that the file has no name. UserError for an unknown name, with the nearest known one.
const GgufPreTokenizer& find_gguf_pre_tokenizer(std::string_view name);

}  // namespace weft
