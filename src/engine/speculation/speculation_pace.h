#pragma once

// Whether proposals pay. A step with proposals takes longer and gives more tokens. Where many sequences decode together
// the weights are read once for all of them, and more rows may cost more than they save; and a draft model may be slow
// for what it guesses. So the seconds per token of steps with and without proposals are measured, for about as many
// sequences (up to a power of two), and the better way is taken. The other one is tried again for a few steps, after 64
// steps, then after 128, up to 1024.
//
// This has no clock, and no result depends on it: a row has the same bits in every step.

#include <array>
#include <cstdint>

namespace weft {

class SpeculationPace {
 public:
  // Without a call all steps have proposals.
  void turn_on() { is_on_ = true; }

  // Begins a step in which `decoding` sequences decode. Returns whether it is to have proposals.
  bool begin(std::int64_t decoding);
  // The step took this time and gave so many tokens. Not to be called for steps with rows of prompts.
  void observe(double seconds, std::int64_t tokens);

 private:
  struct Load {
    bool proposes = true, is_trial = true;
    int steps = 0;                                 // since this way was taken
    int period = 0;                                // steps until the other way is tried again
    std::array<double, 2> seconds_per_token = {};  // without and with proposals, moving means; 0: not measured
  };
  static void decide(Load& load);

  bool is_on_ = false;
  std::array<Load, 64> loads_ = {};  // by the bits of the number of sequences
  Load* load_ = nullptr;             // of the step
};

}  // namespace weft
