#pragma once

// The LoRA adapters that a model is opened with, as the graphs read them: for each adapted product a stack of A and one
// of B over the choices of a row. Choice 0 is that of rows whose request names no adapter: the sum of --lora and
// --lora-scaled, or zeros. The others are those of --lora-modules, in their order.
//
// A GPU multiplies no stacks. There the choices are joined: the rows of A of all choices follow one another, and so do
// the columns of B; a mask has, for each choice, ones at its columns.
//
// Where weights are merged, the columns of B that belong to one of them are zeros in the rows of the others. Adapters
// of smaller rank, and weights that an adapter leaves alone, are zeros as well, so all rows share one pair of products.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/lora_adapter.h"
#include "models/model.h"
#include "options/options.h"

namespace weft {

// An adapter that requests name.
struct NamedLora {
  std::string name, path;
};

// The adapters of --lora-modules, by their names. UserError if two have one name.
std::vector<NamedLora> named_loras(const Options& options);

class LoraStacks {
 public:
  // Reads the adapters that the options name. UserErrors of read_lora_adapter, and for weights that the model does not
  // have, or has in another shape.
  LoraStacks(const Options& options, const ModelDefinition& model, const ModelConfig& config, DeviceType device);

  // Among how many choices a row has one: 0 without adapters, 1 if all rows have the same.
  std::int64_t choices() const { return choices_; }
  // Whether an adapter changes one of these weights.
  bool adapts(const std::vector<std::string>& keys) const;
  // Of WeightRole::lora_a and lora_b: [rank, K] and [N, rank]; of several choices [choices, rank, K] and
  // [choices, N, rank], or joined [choices * rank, K] and [N, choices * rank]. Of lora_mask [choices, choices * rank].
  Meta meta(const std::vector<std::string>& keys, WeightRole role, DType dtype) const;
  Tensor stack(const std::vector<std::string>& keys, WeightRole role, DType dtype) const;
  // UserError if a weight is adapted for which adapts() was never called: no linear layer multiplies by it.
  void check_all_read() const;
  // The adapters, those of choice 0 first.
  const std::vector<LoraAdapter>& adapters() const { return adapters_; }
  // A sentence about each adapter: its path, rank and number of weights.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // What an adapter adds to a weight, in one choice.
  struct Part {
    std::int64_t choice = 0;
    double scale = 1;
    Tensor a, b;
    std::vector<std::int64_t> rows;  // for each row of the weight, its row of B
  };
  struct Adapted {
    std::int64_t columns = 0;
    std::vector<Part> parts;  // by choice
    std::string source;       // the file and the tensor of the first one, for messages
    std::int64_t most_rank(std::int64_t choices) const;
  };
  struct Model {
    const ModelDefinition& definition;
    const ModelConfig& config;
  };
  void add(const std::string& title, const std::string& path, std::int64_t choice, double factor, const Model& model);
  void add_pair(const LoraAdapter& adapter, const LoraPair& pair, std::int64_t choice, double factor,
                const Model& model, const std::map<std::string, ModelDefinition::StoredWeight>& weights);
  std::int64_t rank_of(const std::vector<std::string>& keys) const;
  Tensor stack_of_a(const std::vector<std::string>& keys, const Meta& meta) const;
  Tensor stack_of_b(const std::vector<std::string>& keys, const Meta& meta) const;
  Tensor mask(const Meta& meta) const;

  std::int64_t choices_ = 0;
  bool is_joined_ = false;
  std::map<std::string, std::int64_t> rows_;  // of all matrices of the model, by the checkpoint's names
  std::map<std::string, Adapted> adapted_;    // by the same names
  mutable std::set<std::string> read_;
  std::vector<LoraAdapter> adapters_;
  std::vector<std::string> notes_;
};

}  // namespace weft
