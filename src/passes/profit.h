#pragma once

// Whether a fusion pays, without measurements: what it moves and computes beside what its parts do. A kernel is taken
// to do what its op means at the machine's rates; where one does worse, measurements say so (compiler/tune.h), and they
// go first.
//
//   bytes         each operand and result of each call once, at the given rows; views move nothing
//   instructions  the elements of each primitive of the op's meaning times its cost (Op::cost), by vectors
//   cycles        of each call the longer of bytes / bytes a cycle and instructions / instructions a cycle
//
// KV pages and batches, and what attention and products compute over them, go through both sides alike and are left
// out: such an op counts as one instruction for each vector of its result.

#include <span>
#include <vector>

#include "ir/pattern_rewrite.h"
#include "tensor/device.h"

namespace weft {

class WorkModel {
 public:
  WorkModel(const OpTable& ops, const DeviceDescription& device, std::int64_t rows);

  Work of(std::span<Node* const> nodes);
  Work of(std::span<const PlannedCall> calls);

 private:
  struct Rates {
    int lanes;  // elements of a vector
    double bytes;
    double instructions;
  };
  struct Call {
    const Op* op = nullptr;
    std::vector<std::optional<Meta>> operands;
    Attributes attributes;
    std::vector<Meta> results;
  };
  struct Known {
    Call call;
    Work work;
  };
  static Rates rates_of(const DeviceDescription& device);
  Work of_call(Call call);

  const OpTable& ops_;
  const Rates rates_;  // a cycle of one core or multiprocessor
  const std::int64_t rows_;
  std::vector<Known> known_;  // in a model one match is like the next
};

}  // namespace weft
