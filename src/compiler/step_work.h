#pragma once

// What one run of a model's graph must read, write and compute at given sizes, derived from the graph alone.
//
//   weights       each param once, whole; of a table that rows are gathered from, only the gathered rows
//   KV pages      the keys and values of earlier steps that attention may see, and those that the step writes
//   activations   operands and results of the Plan's steps, other than params and KV pages
//   products      two operations for each multiply-add of a linear layer
//   attention     two operations for each multiply-add of its two products, over the tokens that each row may see
//
// Norms, activations, rotation and quantization are not counted as operations: they are a small part, and their time is
// that of their memory traffic.

#include <functional>

#include "ir/graph.h"
#include "runtime/plan.h"

namespace weft {

// A step of sequences of equal length.
struct StepSizes {
  std::int64_t rows = 1;    // tokens of this step, the same number of each sequence
  std::int64_t cached = 0;  // tokens of each whose keys and values are in the KV pages already
  std::int64_t sequences = 1;
  Bindings symbols;  // the extent of each symbol of the graph
};

struct StepWork {
  std::int64_t weight_bytes = 0;
  std::int64_t kv_read_bytes = 0;
  std::int64_t kv_written_bytes = 0;
  std::int64_t activation_bytes = 0;
  std::int64_t product_operations = 0;
  std::int64_t attention_operations = 0;
  // The parts of both whose operands have 16 bits, and at most 8 bits: processors may multiply these faster.
  std::int64_t operations_of_16_bits = 0;
  std::int64_t operations_of_8_bits = 0;

  StepWork& operator+=(const StepWork& more);
  // The traffic that cannot be avoided. Activations may stay in caches.
  std::int64_t least_bytes() const { return weight_bytes + kv_read_bytes + kv_written_bytes; }
  std::int64_t operations() const { return product_operations + attention_operations; }
};

// The bytes of a param as it is loaded.
using ParamBytes = std::function<std::int64_t(const GraphValue& param)>;

// All but the activations. The graph may be at any stage.
StepWork work_of(const Graph& graph, const StepSizes& sizes, const ParamBytes& bytes_of_param);

// Bytes of the activations that the Plan's steps read and write.
std::int64_t activation_bytes(const Plan& plan, const Bindings& symbols);

}  // namespace weft
