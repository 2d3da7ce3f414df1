#include "tests/engine/step_logits.h"

#include "tests/engine/tiny_model.h"

namespace weft {

std::vector<std::vector<float>> logits_of_step(ModelRunner& runner, const std::vector<SequenceOfStep>& sequences) {
  const std::int64_t block = runner.facts().kv.block;
  runner.allocate_pages(std::ssize(sequences));  // each of at most a page
  StepBuffer step(runner.step_limits());
  step.begin(1);
  std::int32_t page = 0;
  std::int64_t rows = 0;
  for (const SequenceOfStep& one : sequences) {
    const std::vector<int> ids = some_ids(one.count, one.seed);
    for (int at = 0; at < one.count; ++at)
      step.add_row(ids[static_cast<std::size_t>(at)], at, page * block + at, {.adapter = one.adapter});
    step.add_sequence(one.count, {&page, 1});
    rows += one.count;
    ++page;
  }
  for (std::int64_t row = 0; row < rows; ++row) step.want_logits(row);
  const Tensor& logits = runner.step(step.input());
  std::vector<std::vector<float>> copied(static_cast<std::size_t>(rows),
                                         std::vector<float>(static_cast<std::size_t>(runner.vocabulary_size())));
  for (std::int64_t row = 0; row < rows; ++row) runner.copy_row(logits, row, copied[static_cast<std::size_t>(row)]);
  return copied;
}

}  // namespace weft
