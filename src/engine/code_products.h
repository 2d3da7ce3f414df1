#pragma once

// Linear layers over codes on a GPU: the product that each of them ends in, whether the device has a kernel for it, and
// which options take that away.

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

// The last call of nn::linear_over_codes with these weights, whose types `meta` gives, and as many rows of `depth`
// columns as there are tokens.
using WeightMeta = std::function<Meta(const std::vector<std::string>& keys, WeightRole role)>;
CodeProduct code_product(const OpTable& ops, const ModelFacts& facts, const std::vector<std::string>& keys,
                         const Dim& depth, const WeightMeta& meta);

// Whether some kernel of the device takes it, whatever the count of its rows. What the host would compute in its place
// does not count.
bool is_multiplied(const CodeProduct& product, const Context& context);

// Of a product that is not multiplied: what was given without which it would be, "--batch-invariant" or
// "--ir-op-priority.linear_scaled=native" or both; "" where it would not be either.
std::string options_against(const CodeProduct& product, const Context& context);

}  // namespace weft
