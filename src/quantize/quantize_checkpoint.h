#pragma once

// A checkpoint in another number format: a Hugging Face folder with config.json, the tokenizer's files and safetensors.
// Linear layers get the format, all else bf16; the head and the embedding stay as they are. A GGUF file's metadata
// becomes config.json and tokenizer.json, and its query and key rows the order that Hugging Face has them in.

#include <map>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "models/model.h"
#include "quantize/number_format.h"

namespace weft {

// What a linear layer was given while a text ran: its weights' names in the checkpoint (those merged into one layer
// together) and the largest magnitude. The weights of one layer share what is made of it.
struct LinearInput {
  std::vector<std::string> weights;
  float magnitude = 0;
};

struct QuantizeRecipe {
  NumberFormat format = NumberFormat::bf16;
  BlockShape block;                 // fp8-block
  std::vector<LinearInput> inputs;  // nvfp4; fp8 where scales of inputs are to stand in the checkpoint
  // Weights that have more bytes in bf16 are shared out over several files; those of one file are in memory together.
  std::int64_t file_bytes = std::int64_t{2} << 30;
  bool ignores_unread_tensors = false;  // those that no weight reads are left out with a note
};

struct QuantizeSummary {
  std::int64_t quantized = 0;  // weights in the format
  std::int64_t others = 0;     // weights in bf16
  std::int64_t bytes = 0;      // of the weights written
  std::vector<std::string> files;
  std::vector<std::string> notes;  // sentences on tensors that are not in the folder
};

// Writes the folder, config.json last, so that one which is not complete cannot be opened. UserError: whatever is wrong
// with the checkpoint, blocks that do not divide a weight (naming both), inputs that nothing is known of, a folder that
// is the checkpoint's own or holds other weights.
QuantizeSummary quantize_checkpoint(const Checkpoint& checkpoint, const ModelDefinition& model,
                                    const QuantizeRecipe& recipe, const std::string& folder, ThreadPool& threads);

}  // namespace weft
