#pragma once

// Some folders say that the head is the embedding and have a head of its own all the same.

#include "io/checkpoint.h"
#include "io/model_config.h"

namespace weft {

// Clears config.tie_word_embeddings, with a warning, if the folder has a head whose rows differ from the embedding's,
// as transformers does. Of large weights some rows are compared. `embedding` is the name of its tensor.
void untie_if_differs(const Checkpoint& checkpoint, std::string_view embedding, ModelConfig& config);

}  // namespace weft
