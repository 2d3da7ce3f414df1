#pragma once

// What tokenizer_config.json of a Hugging Face folder adds to tokenizer.json: the names of tokens, and for some
// tokenizer classes which of them are put around a text.

#include <string>

#include "base/json.h"
#include "io/vocabulary.h"

namespace weft {

// `model_type` is config.json's; it has the class where the file has none. UserError, `[where] ...`.
void apply_tokenizer_config(const Json& json, const std::string& where, const std::string& model_type,
                            Vocabulary& vocabulary);

}  // namespace weft
