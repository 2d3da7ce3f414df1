#pragma once

// Which values the linear layers of a model are given while it reads a text.

#include <string>
#include <vector>

#include "engine/engine.h"
#include "quantize/quantize_checkpoint.h"

namespace weft {

// The text that is read when the user has none: a page of prose, numbers, code and dialogue.
extern const char* const kCalibrationText;

// Reads at most `most_tokens` of the text, in sequences as long as the model's context allows, and gives every linear
// layer of the forward pass with the largest magnitude of its input, in the order of the model. The engine's context
// must be of eager mode. UserError: a text without a token; an input that is not finite, naming the weight.
std::vector<LinearInput> calibrate(Engine& engine, const std::string& text, std::int64_t most_tokens = 4096);

}  // namespace weft
