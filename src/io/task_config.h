#pragma once

// The keys of config.json by which a model is a language model, or another one that has the same layers.

#include <string>

#include "io/config_fields.h"

namespace weft {

// UserError unless use_bidirectional_attention is false, or "vision": that is about tokens of images alone.
void check_is_causal(const JsonFields& fields);

// The first of `architectures`; "" if there is none. UserError for classes of other tasks, such as
// LlamaForSequenceClassification, and for those that attend to later tokens.
std::string architecture_class(const JsonFields& fields);

}  // namespace weft
