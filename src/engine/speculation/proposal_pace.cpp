#include "engine/speculation/proposal_pace.h"

#include <algorithm>

namespace weft {
namespace {

// A step that computes a few rows more costs up to half as much again on a CPU, so proposals pay while about a fifth
// of their tokens is kept. A sequence whose proposals fail is tried again after pauses of twice the length each.
constexpr double kLeastKeptShare = 0.2, kWeightOfLast = 0.25;
constexpr std::int64_t kFirstPause = 8, kLongestPause = 256;

}  // namespace

bool ProposalPace::is_due() {
  if (pause_ == 0) return true;
  --pause_;
  return false;
}

void ProposalPace::report(std::int64_t proposed, std::int64_t kept) {
  const double share = static_cast<double>(kept) / static_cast<double>(proposed);
  kept_share_ += kWeightOfLast * (share - kept_share_);
  if (kept_share_ >= kLeastKeptShare) {
    next_pause_ = 0;
    return;
  }
  next_pause_ = std::clamp(2 * next_pause_, kFirstPause, kLongestPause);
  pause_ = next_pause_;
  kept_share_ = kLeastKeptShare;  // one more proposal decides
}

}  // namespace weft
