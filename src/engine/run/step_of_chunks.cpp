#include "engine/run/step_of_chunks.h"

#include <algorithm>

namespace weft {

void add_logit_rows(std::span<const Chunk> chunks, std::vector<std::int64_t>& rows) {
  std::int64_t end = 0;
  for (const Chunk& chunk : chunks) {
    end += chunk.rows;
    for (std::int64_t row = end - chunk.logit_rows; row < end; ++row) rows.push_back(row);
  }
}

void fill_step(StepBuffer& step, std::span<const Chunk> chunks, std::span<const std::int64_t> logit_rows,
               std::int64_t block, Phase phase) {
  std::size_t widest = 0;
  for (const Chunk& chunk : chunks) widest = std::max(widest, chunk.sequence->pages.size());
  step.begin(static_cast<std::int64_t>(widest), phase);
  for (const Chunk& chunk : chunks) {
    const ScheduledSequence& sequence = *chunk.sequence;
    const std::int64_t end = sequence.computed + chunk.rows;
    for (std::int64_t at = sequence.computed; at < end; ++at)
      step.add_row(sequence.token(at), at, sequence.pages[static_cast<std::size_t>(at / block)] * block + at % block,
                   {.token_type = at >= sequence.second_text ? 1 : 0, .adapter = sequence.adapter});
    step.add_sequence(end, sequence.pages);
  }
  for (const std::int64_t row : logit_rows) step.want_logits(row);
}

}  // namespace weft
