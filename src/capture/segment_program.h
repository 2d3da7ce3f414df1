#pragma once

// One compiled segment: the indices of its inputs and results, and the program.

#include "capture/recording.h"
#include "compiler/run/graph_program.h"
#include "tensor/storage_pool.h"

namespace weft {

class SegmentProgram {
 public:
  SegmentProgram(const Context& context, SegmentGraph built);

  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& results() const { return results_; }
  // Takes and returns tensors in the order of inputs() and results(). A result aliases an input or is valid until the
  // next run. UserError where a donated tensor overlaps another one.
  std::vector<Tensor> run(std::span<const Tensor> tensors);

 private:
  std::vector<int> inputs_, results_;
  std::vector<std::string> names_;    // of the inputs
  std::vector<std::size_t> donated_;  // inputs that a run may overwrite
  GraphProgram program_;
};

// A copy with its own memory from the pool, in the same layout; the tensor itself where it aliases one of `given`.
Tensor owned(const Tensor& tensor, std::span<const Tensor> given, StoragePool& pool);

}  // namespace weft
