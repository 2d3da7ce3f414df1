#pragma once

// Linear layers over quantized codes on a GPU: the product that computes each layer, whether the device has a kernel
// for it, and which options exclude that kernel.

#include <functional>
#include <string>
#include <vector>

#include "compiler/context.h"
#include "io/checkpoint.h"
#include "nn/builder.h"

namespace weft {

// A call as kernels see it.
struct CodeProduct {
  std::string op;
  std::vector<std::optional<Meta>> operands;
  std::vector<Meta> results;
  Attributes attributes;
};

// The last call of nn::linear_over_codes for these weights, whose types `meta` gives. Its input has one row of `depth`
// columns for each token.
using WeightMeta = std::function<Meta(const std::vector<std::string>& keys, WeightRole role)>;
CodeProduct code_product(const OpTable& ops, const ModelFacts& facts, const std::vector<std::string>& keys,
                         const Dim& depth, const WeightMeta& meta);

// Whether some kernel of the device supports the product for any number of rows. A fallback on the host does not count.
bool is_multiplied(const CodeProduct& product, const Context& context);

// For a product without a kernel: the options without which it would have one, "--batch-invariant" or
// "--ir-op-priority.linear_scaled=native" or both; "" where no option is the cause.
std::string options_against(const CodeProduct& product, const Context& context);

}  // namespace weft
