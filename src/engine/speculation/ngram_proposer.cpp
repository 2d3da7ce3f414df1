#include "engine/speculation/ngram_proposer.h"

#include <algorithm>

namespace weft {

void NgramProposer::propose(std::span<const Sequence> sequences) {
  for (const Sequence& one : sequences) look_up_next(*one.sequence, one.most);
}

void NgramProposer::look_up_next(ScheduledSequence& sequence, std::int64_t most) const {
  const std::int64_t size = sequence.token_count();
  std::int64_t longest = config_.prompt_lookup_min - 1, found = 0;
  for (std::int64_t end = config_.prompt_lookup_min; end < size && longest < config_.prompt_lookup_max; ++end) {
    std::int64_t same = 0;
    while (same < std::min(end, config_.prompt_lookup_max) &&
           sequence.token(end - 1 - same) == sequence.token(size - 1 - same))
      ++same;
    if (same <= longest) continue;
    longest = same;
    found = end;
  }
  if (found == 0) return;
  for (std::int64_t at = found; at < std::min(size, found + most); ++at) sequence.draft.push_back(sequence.token(at));
}

}  // namespace weft
