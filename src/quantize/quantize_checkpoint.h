#pragma once

// Writes a checkpoint in another number format, as a Hugging Face folder with config.json, the tokenizer's files and
// safetensors. Linear layers get the format and everything else bf16; the head and the embedding are not quantized. A
// GGUF file's metadata becomes config.json and tokenizer.json, and the rows of its query and key weights are reordered
// as Hugging Face expects.

#include <map>
#include <string>
#include <vector>

#include "models/model.h"
#include "parallel/thread_pool.h"
#include "quantize/number_format.h"

namespace weft {

// The input of a linear layer while a calibration text ran: the names of the layer's weights in the checkpoint (weights
// merged into one layer are listed together) and the largest input magnitude. All weights of a layer share the scale
// made from it.
struct LinearInput {
  std::vector<std::string> weights;
  float magnitude = 0;
};

struct QuantizeRecipe {
  NumberFormat format = NumberFormat::bf16;
  BlockShape block;                 // fp8-block, w4a16
  std::vector<LinearInput> inputs;  // for nvfp4, and for fp8 if the checkpoint is to have input scales
  // If the weights have more bytes than this in bf16, they are split into several files. The weights of one file are in
  // memory together.
  std::int64_t file_bytes = std::int64_t{2} << 30;
  bool ignores_unread_tensors = false;  // tensors that no weight reads are left out, with a note
};

struct QuantizeSummary {
  std::int64_t quantized = 0;  // weights in the format
  std::int64_t others = 0;     // weights in bf16
  std::int64_t bytes = 0;      // of the weights written
  std::vector<std::string> files;
  std::vector<std::string> notes;  // sentences about tensors that are not in the folder
};

// Writes the folder, which must be missing or empty (quantize/output_folder.h). If it fails, nothing of it is left.
// config.json is last, so what a killed process leaves cannot be opened. UserError for an invalid checkpoint, for
// blocks that do not divide a weight (it names both), for missing inputs, and for a folder that is not empty.
QuantizeSummary quantize_checkpoint(const Checkpoint& checkpoint, const ModelDefinition& model,
                                    const QuantizeRecipe& recipe, const std::string& folder, ThreadPool& threads);

}  // namespace weft
