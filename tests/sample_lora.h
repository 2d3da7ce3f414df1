#pragma once

// LoRA adapters of random values for the weights of a SampleCheckpoint.

#include <set>
#include <string>
#include <vector>

#include "models/model.h"
#include "tests/base/temporary_folder.h"
#include "tests/sample_checkpoint.h"

namespace weft {

class SampleLora {
 public:
  struct Settings {
    std::int64_t rank = 4;
    double alpha = 8;
    std::uint64_t seed = 1;
  };
  // Adapts the matrices with these names in the model's table, in each layer that has them.
  SampleLora(const ModelDefinition& model, const SampleCheckpoint& base, const std::set<std::string>& names,
             Settings settings);

  bool empty() const { return pairs_.empty(); }
  std::size_t size() const { return pairs_.size(); }
  // Adds the adapter's products, times the factor, to the weights of a checkpoint that nothing else reads.
  void merge_into(const SampleCheckpoint& checkpoint, double factor = 1) const;
  // A folder as PEFT writes it. `changes` are members of adapter_config.json to set to other values.
  std::string write_folder(const TemporaryFolder& folder, const std::string& name, DType dtype = DType::f32,
                           const nlohmann::json& changes = nlohmann::json::object()) const;
  // A file as llama.cpp's convert_lora_to_gguf.py writes it.
  std::string write_gguf(const TemporaryFolder& folder, const std::string& name) const;

 private:
  struct Pair {
    std::string name, gguf_name;  // of the weight
    Tensor a, b;                  // f32, in the order of a folder
    bool is_transposed;           // the weight in the folder
    int rotated_heads;            // whose rows are in another order in a GGUF file; 0 for none
    bool is_grouped;              // in the folder, the rows are sorted by key head
  };
  Settings settings_;
  std::string architecture_;  // of GGUF files
  ModelConfig config_;
  std::vector<Pair> pairs_;
};

// The names in models' tables of linear layers that every row passes.
std::set<std::string> names_of_linear_layers();

}  // namespace weft
