#pragma once

// Proposals by look-up in the sequence itself, as vLLM's method "ngram": where the last tokens of a sequence occurred
// before, the tokens that followed there are proposed as the next ones; of several places, those after the longest
// occurrence, and the first one of equally long ones.

#include "engine/speculation/proposer.h"
#include "engine/speculation/speculative_config.h"

namespace weft {

class NgramProposer : public Proposer {
 public:
  explicit NgramProposer(const SpeculativeConfig& config) : config_(config) {}
  void propose(std::span<const Sequence> sequences) override;

 private:
  void look_up_next(ScheduledSequence& sequence, std::int64_t most) const;

  SpeculativeConfig config_;
};

}  // namespace weft
