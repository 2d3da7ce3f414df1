#include "engine/run/largest_step.h"

#include <numeric>
#include <vector>

namespace weft {

void run_largest_step(ModelRunner& runner) {
  const std::int64_t rows = runner.max_tokens(), block = runner.facts().kv.block, blocks = (rows + block - 1) / block;
  runner.allocate_pages(blocks);
  std::vector<std::int32_t> pages(static_cast<std::size_t>(blocks));
  std::iota(pages.begin(), pages.end(), 0);
  StepBuffer step(runner.step_limits());
  step.begin(blocks, Phase::prompt);
  for (std::int64_t row = 0; row < rows; ++row) step.add_row(0, row, row);
  step.add_sequence(rows, pages);
  for (std::int64_t row = rows - runner.max_logit_rows(); row < rows; ++row) step.want_logits(row);
  runner.step(step.input());
}

}  // namespace weft
