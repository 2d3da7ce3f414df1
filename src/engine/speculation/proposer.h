#pragma once

// Speculative decoding: tokens that may follow are proposed for each sequence that decodes. A step of the model then
// computes them together with the last token, and those that sampling chooses anyway are kept. So the answer is the
// same as without, whatever is proposed.

#include <cstdint>
#include <memory>
#include <span>

#include "engine/schedule/scheduler.h"

namespace weft {

class Proposer {
 public:
  virtual ~Proposer() = default;

  // What a proposer keeps of a sequence between steps. It must be destroyed before the proposer and the sequence.
  class Kept {
   public:
    virtual ~Kept() = default;
  };
  // Null where nothing is kept. `sequence` must stay at its address.
  virtual std::unique_ptr<Kept> begin(const ScheduledSequence&) { return nullptr; }

  struct Sequence {
    ScheduledSequence* sequence = nullptr;
    Kept* kept = nullptr;   // of begin()
    std::int64_t most = 0;  // tokens that may be proposed; at least 1
  };
  // Appends tokens to the `draft` of each sequence, which is empty.
  virtual void propose(std::span<const Sequence> sequences) = 0;
};

}  // namespace weft
