#pragma once

// Reads what tokenizer_config.json of a Hugging Face folder adds to tokenizer.json: the names of tokens, and for some
// tokenizer classes the tokens that are added around a text.

#include <string>

#include "base/json.h"
#include "io/vocabulary.h"

namespace weft {

// `model_type` is that of config.json; it determines the tokenizer class if the file has none. UserError, `[where]
// ...`.
void apply_tokenizer_config(const Json& json, const std::string& where, const std::string& model_type,
                            Vocabulary& vocabulary);

}  // namespace weft
