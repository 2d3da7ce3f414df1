#pragma once

// Estimates whether a fusion pays, without measurements: it compares the memory traffic and the instructions of the
// fused op with those of its parts. The model assumes that a kernel computes its op's meaning at the machine's rates.
// Measurements (compiler/tune/tune.h) show where a kernel is slower, and they take precedence.
//
//   bytes         for each call: each operand and result once, at the given rows; views move nothing
//   instructions  for each primitive of the op's meaning: elements times cost (Op::cost), divided by a vector's lanes
//   cycles        for each call: the larger of bytes / (bytes per cycle) and instructions / (instructions per cycle)
//
// KV pages and batches, and the work of attention and matrix products, are the same on both sides and are left out.
// Such an op counts as one instruction for each vector of its result.

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
    int lanes;  // elements in a vector
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
  const Rates rates_;  // per cycle of one core or multiprocessor
  const std::int64_t rows_;
  std::vector<Known> known_;  // cached, because the matches in a model are alike
};

}  // namespace weft
