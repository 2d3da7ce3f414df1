#pragma once

// What follows the pooling: the layers that make an embedding, or the scores of a text, of the pooled numbers. A folder
// of sentence-transformers has them as modules Dense, a model of a class ...ForSequenceClassification as its head
// (ArchitectureFacts::score_layers), and a GGUF file as the tensors dense_2 and dense_3, or cls and cls.output. Scores
// that are logits of tokens have a layer of rows of the head of logits.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "io/score_config.h"

namespace weft {

// y = norm(activation(weight x + bias)).
struct DenseLayer {
  std::int64_t inputs = 0, outputs = 0;
  std::vector<float> weight;  // [outputs, inputs]
  std::vector<float> bias;    // [outputs] or empty
  DenseActivation activation = DenseActivation::none;
  std::vector<float> norm, norm_bias;  // [outputs] or empty: there is no layer norm, or it has no bias
  double norm_eps = 0;
};

struct EmbeddingHead {
  std::optional<Pooling> pooling;  // nullopt: the checkpoint states none
  std::vector<DenseLayer> layers;  // each reads what the one before it leaves, the first one the pooled numbers
  std::int64_t width = 0;          // of what they leave
  bool scores = false;             // that is a score of a text, or several, and no embedding
  bool has_sigmoid = false;        // a score is the sigmoid of the number
  ClassActivation classes = ClassActivation::none;
  std::vector<std::string> labels;    // of the classes that several scores are of
  std::optional<ScorePrompt> prompt;  // of two texts; nullopt: the tokenizer joins them
};

// The head of logits of a model that generates text: the name of its weight in the checkpoint, and its tokenizer.
struct LogitHead {
  std::string weight;
  FindToken find_token;
};

// UserError, which names the file and the tensor, for layers that are not there or do not fit.
EmbeddingHead embedding_head_of(const Checkpoint& checkpoint, const ArchitectureFacts& facts, const ModelConfig& config,
                                const LogitHead& logits = {});

// The tensors of GGUF files that are read here.
bool is_of_embedding_head(std::string_view gguf_tensor);

// The first `dimensions` of the numbers after the head's layers, nullopt for all of them, divided by their Euclidean
// length if that is not 0. The first numbers are an embedding by themselves where the model was trained for it.
std::vector<float> finished_embedding(const EmbeddingHead& head, std::vector<float> pooled,
                                      std::optional<std::int64_t> dimensions, bool normalizes);
// The score of a head with one; as the number itself unless it `activates`.
double finished_score(const EmbeddingHead& head, std::vector<float> pooled, bool activates);
// The same of all classes.
std::vector<double> finished_classes(const EmbeddingHead& head, std::vector<float> pooled, bool activates);
// The cosine of the angle between two embeddings; 0 if one of them is 0.
double cosine(std::span<const float> a, std::span<const float> b);

// A list of numbers, each with the fewest digits from which its float is read again.
Json embedding_json(std::span<const float> embedding);

}  // namespace weft
