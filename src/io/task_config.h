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
// LlamaForSequenceClassification, and for those that attend to later tokens. Encoders may have the head of their
// training (BertForMaskedLM), which is not read, or one that scores texts (io/embedding_head.h).
std::string architecture_class(const JsonFields& fields, Bidirectional bidirectional);

}  // namespace weft
