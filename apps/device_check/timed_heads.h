#pragma once

// Launches, to be timed, of kernels that work on heads: attention and rotation.

#include "apps/device_check/timed_launches.h"
#include "kernels/cuda/lib/attention_plan.h"

namespace weft::device_check {

// `decode_tokens` as in TimedSubject.
TimedLaunch timed_attention(cuda::AttentionDesign design, std::uint32_t decode_tokens);

// Rotates heads of queries and keys that are stored as one product: [rows, 1.5 * columns], with the values after them.
struct TimedRotation {
  bool normalizes = false;   // before the rotation
  bool fills_pages = false;  // writes keys and values to the pages; else writes keys to a buffer, without values
};
TimedLaunch timed_rotation(TimedRotation rotation);

}  // namespace weft::device_check
