#pragma once

// Measures the inputs of a model's linear layers while the model reads a text.

#include <string>
#include <vector>

#include "engine/engine.h"
#include "quantize/quantize_checkpoint.h"

namespace weft {

// The default text: a page of prose, numbers, code and dialogue.
extern const char* const kCalibrationText;

// Reads at most `most_tokens` of the text, in sequences as long as the model's context allows. Returns every linear
// layer of the forward pass with the largest magnitude of its input, in the order of the model. The engine's context
// must be in eager mode. UserError for a text without a token, and for an input that is not finite; it names the
// weight.
std::vector<LinearInput> calibrate(Engine& engine, const std::string& text, std::int64_t most_tokens = 4096);

}  // namespace weft
