#pragma once

// The small files of a Hugging Face folder for a checkpoint of either kind.

#include <map>
#include <string>

#include "base/json.h"
#include "io/checkpoint.h"

namespace weft {

// config.json for weights in bf16 with this quantization_config (null: none). A folder's own keys stay; for a GGUF file
// they are made from its metadata, `classes` being what config.json names its class. UserError for a GGUF file whose
// rotary scaling config.json cannot say.
std::string config_json(const Checkpoint& checkpoint, const ModelConfig& config, const Json& classes,
                        const Json& quantization);

// Tokenizer, chat template and generation config, by file name: a folder's as they are, a GGUF file's made from its
// metadata.
std::map<std::string, std::string> text_files(const Checkpoint& checkpoint, const ModelConfig& config);

// A Vocabulary as tokenizer.json, which read_tokenizer_json reads back.
std::string tokenizer_json(const Vocabulary& vocabulary);

}  // namespace weft
