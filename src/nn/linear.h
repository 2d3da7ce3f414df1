#pragma once

// Linear layers that know their weight's scheme and write it out: before a block-quantised weight in fast mode stands
// the quantisation of the activations as a node of its own; in exact mode, and for plain weights, a plain linear.

#include <string>
#include <vector>

#include "nn/builder.h"

namespace weft::nn {

// x [.., K] times the transpose of the weight named `name` (rows of `keys` merged) -> [.., N].
Value linear(Builder& builder, const Value& x, const std::string& name, const std::vector<std::string>& keys);

// The same for several weights over one input, their results one after another along the last dim. Where the weights
// are of one type their rows are merged and it is one product.
Value merged_linear(Builder& builder, const Value& x, const std::string& name, const std::vector<std::string>& keys);

}  // namespace weft::nn
