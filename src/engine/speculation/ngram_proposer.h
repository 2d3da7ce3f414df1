#pragma once

// Proposals by look-up in the sequence itself, as vLLM's method "ngram": where the last tokens of a sequence occurred
// before, the tokens that followed there are proposed as the next ones.

#include <vector>

#include "engine/speculation/proposer.h"
#include "engine/speculation/speculative_config.h"

namespace weft {

// Appends at most `most` tokens to `proposal`: those after the longest earlier occurrence of the last tokens, the first
// one of equally long ones.
void look_up_next(const SpeculativeConfig& config, const ScheduledSequence& sequence, std::int64_t most,
                  std::vector<int>& proposal);

class NgramProposer : public Proposer {
 public:
  explicit NgramProposer(SpeculativeConfig config) : config_(std::move(config)) {}
  void propose(std::span<const Sequence> sequences) override {
    for (const Sequence& one : sequences) look_up_next(config_, *one.sequence, one.most, one.sequence->draft);
  }

 private:
  SpeculativeConfig config_;
};

}  // namespace weft
