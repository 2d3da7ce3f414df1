#pragma once

// How the embedding of a text is made of a model's final hidden states, as a checkpoint of an embedding model states
// it: modules.json of sentence-transformers and the config.json of its Pooling, or pooling_type of a GGUF file.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weft {

class Checkpoint;

// Of the hidden states of all tokens: the last one, their mean, or the first one (that of [CLS]).
enum class Pooling : std::uint8_t { last, mean, cls };

// llama.cpp's words. UserError that names `[what]` for another one.
Pooling pooling_from_text(std::string_view text, const std::string& what);
std::string_view pooling_text(Pooling pooling);

// Nullopt where the checkpoint states none, as those that generate text. UserError for a pooling that is not in the
// list, and for a module after it other than Normalize, since the embeddings would be others.
std::optional<Pooling> pooling_of(const Checkpoint& checkpoint);

// The first `dimensions` of the pooled numbers, nullopt for all of them, divided by their Euclidean length if that is
// not 0. The first numbers are an embedding by themselves where the model was trained for it.
std::vector<float> finished_embedding(std::vector<float> pooled, std::optional<std::int64_t> dimensions,
                                      bool normalizes);
// A list of numbers, each with the fewest digits from which its float is read again.
Json embedding_json(std::span<const float> embedding);

}  // namespace weft
