#pragma once

// Writes the small files of a Hugging Face folder, for a checkpoint of either kind.

#include <map>
#include <string>

#include "base/json.h"
#include "io/checkpoint.h"

namespace weft {

// config.json for bf16 weights with this quantization_config (null: none). A folder's own keys are kept. For a GGUF
// file the keys are made from its metadata, with the architecture's names of keys, and `sample`, a config.json of the
// architecture, has `architectures` and `model_type`. UserError for a GGUF file whose rotary scaling config.json cannot
// express.
std::string config_json(const Checkpoint& checkpoint, const ModelConfig& config, const ArchitectureFacts& facts,
                        const Json& sample, const Json& quantization);

// Tokenizer, chat template and generation config, by file name. A folder's files are copied unchanged; those of a GGUF
// file are made from its metadata.
std::map<std::string, std::string> text_files(const Checkpoint& checkpoint, const ModelConfig& config);

// A Vocabulary as tokenizer.json; read_tokenizer_json can read it.
std::string tokenizer_json(const Vocabulary& vocabulary);

}  // namespace weft
