#pragma once

// One segment, compiled: which values it takes and gives, by number, and the program between.

#include "capture/recording.h"
#include "compiler/graph_program.h"
#include "tensor/storage_pool.h"

namespace weft {

class SegmentProgram {
 public:
  SegmentProgram(const Context& context, SegmentGraph built);

  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& results() const { return results_; }
  // In the order of inputs() and results(). What is given looks into what was taken, or is valid until the next run.
  // UserError where a tensor that is given away meets another one.
  std::vector<Tensor> run(std::span<const Tensor> tensors);

 private:
  std::vector<int> inputs_, results_;
  std::vector<std::string> names_;    // of the inputs
  std::vector<std::size_t> donated_;  // inputs that a run may write over
  GraphProgram program_;
};

// The tensor with memory of its own, from the pool, laid out the same; itself where it looks into one of `given`.
Tensor owned(const Tensor& tensor, std::span<const Tensor> given, StoragePool& pool);

}  // namespace weft
