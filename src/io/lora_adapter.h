#pragma once

// A LoRA adapter on disk: a folder of PEFT (adapter_config.json, adapter_model.safetensors or .bin) or of mlx-lm
// (adapter_config.json, adapters.safetensors), or a GGUF file as llama.cpp's convert_lora_to_gguf.py writes it. A
// linear layer with the weight W [N, K] then computes x W^T + scale (x A^T) B^T. The files are mapped and stay mapped
// while a tensor of them lives.

#include <string>
#include <vector>

#include "io/model_config.h"
#include "tensor/tensor.h"

namespace weft {

// What the adapter adds to one weight.
struct LoraPair {
  std::string weight;   // of the model, as its folders or GGUF files name it; format says which
  std::string tensors;  // the name of A in the file, for messages
  Tensor a;             // [rank, K], as stored: f32, f16 or bf16
  Tensor b;             // [N, rank]
  double scale = 1;     // alpha / rank; with use_rslora alpha / sqrt(rank); mlx-lm states it

  std::int64_t rank() const { return a.meta.shape[0].number(); }
};

struct LoraAdapter {
  std::string path;  // as given
  std::string file;  // that has the tensors
  CheckpointFormat format = CheckpointFormat::hugging_face;
  std::string architecture;  // of the base model; "" in a folder, which does not name it
  std::vector<LoraPair> pairs;
  std::vector<std::string> unknown_keys;  // of adapter_config.json
};

// UserError if there is no adapter at the path; for damaged files; for keys and tensors that ask for what is not
// implemented (DoRA, biases, whole modules, embeddings); and for a pair whose shapes or rank do not fit.
LoraAdapter read_lora_adapter(const std::string& path);

}  // namespace weft
