#pragma once

// The keys of config.json by which a model is a language model, or another one that has the same layers.

#include <string>

#include "io/architecture_facts.h"
#include "io/config_fields.h"

namespace weft {

// Whether no token attends to a later one. UserError unless use_bidirectional_attention is false, "vision", which is
// about tokens of images alone, or true where the architecture lets files ask for it.
bool is_causal(const JsonFields& fields, Bidirectional bidirectional);
// The same of GGUF files, by attention.causal, which other architectures refuse (io/known_keys.h).
bool is_causal(const GgufFields& fields, Bidirectional bidirectional);

// The first of `architectures`; "" if there is none. UserError for classes of other tasks, such as
// LlamaForTokenClassification, and for decoders whose tokens attend to later ones. A model may have a head that scores
// texts (io/score_config.h), and an encoder that of its training (BertForMaskedLM), which is not read.
std::string architecture_class(const JsonFields& fields, Bidirectional bidirectional);

}  // namespace weft
