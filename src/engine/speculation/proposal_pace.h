#pragma once

// When to propose tokens for a sequence: not for a while where few of the last ones were kept.

#include <cstdint>

namespace weft {

class ProposalPace {
 public:
  // Whether this step is one for a proposal. To be called once for each step.
  bool is_due();
  // How many tokens of the last proposal were kept. To be called after each proposal that is not empty.
  void report(std::int64_t proposed, std::int64_t kept);

 private:
  double kept_share_ = 1;        // a moving mean
  std::int64_t pause_ = 0;       // steps without a proposal that are left
  std::int64_t next_pause_ = 0;  // doubles while proposals fail
};

}  // namespace weft
