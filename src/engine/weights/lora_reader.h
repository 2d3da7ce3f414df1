#pragma once

// What LoRA adapters add to the weights of a model, whichever of both is a folder or a GGUF file.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/lora_adapter.h"
#include "models/model.h"

namespace weft {

// What an adapter adds to one weight.
struct LoraPart {
  double scale = 1;
  Tensor a, b;
  std::vector<std::int64_t> rows;  // for each row of the weight, its row of B
  std::string source;              // the file and the tensor, for messages

  std::int64_t rank() const { return a.meta.shape[0].number(); }
};

// The sum of adapters, by the names that the checkpoint has for the weights.
using LoraParts = std::map<std::string, std::vector<LoraPart>>;

// Whether they add to one of these weights.
bool adapts_any(const LoraParts& parts, const std::vector<std::string>& keys);

// Any thread may call it.
class LoraReader {
 public:
  // Both must outlive the reader.
  LoraReader(const ModelDefinition& model, const ModelConfig& config) : model_(model), config_(config) {}

  // Adds the adapter, times the factor. UserErrors of read_lora_adapter, and for weights that the model does not have,
  // or has in another shape.
  LoraAdapter read(const std::string& path, double factor, LoraParts& parts) const;

 private:
  using Weights = std::map<std::string, ModelDefinition::StoredWeight>;  // by the names of the adapter's format
  std::string embedding_of_head(const std::string& weight, CheckpointFormat format) const;
  void add_pair(const LoraAdapter& adapter, const LoraPair& pair, double factor, const Weights& weights,
                LoraParts& parts) const;

  const ModelDefinition& model_;
  const ModelConfig& config_;
};

// A sentence about an adapter: its path, for whom it is, its rank and its number of weights.
std::string lora_note(const LoraAdapter& adapter, const std::string& title);

}  // namespace weft
