#pragma once

// Launches of kernels that work on heads, to be timed: attention and rotation.

#include "apps/device_check/timed_launches.h"
#include "kernels/cuda/lib/attention_plan.h"

namespace weft::device_check {

// `decode_tokens` as in TimedSubject.
TimedLaunch timed_attention(cuda::AttentionDesign design, std::uint32_t decode_tokens);

// Heads of queries and keys as they come of one product, [rows, 1.5 * columns] with the values behind them, are
// rotated.
struct TimedRotation {
  bool normalizes = false;   // before
  bool fills_pages = false;  // keys and values go there; else keys are written and values left out
};
TimedLaunch timed_rotation(TimedRotation rotation);

}  // namespace weft::device_check
