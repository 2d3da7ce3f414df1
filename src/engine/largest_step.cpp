#include "engine/largest_step.h"

#include <numeric>

#include "tensor/batch.h"

namespace weft {

void run_largest_step(ModelRunner& runner) {
  const std::int64_t rows = runner.max_tokens(), block = runner.facts().kv.block, pages = (rows + block - 1) / block;
  runner.allocate_pages(pages);
  const std::vector<std::int64_t> ids(static_cast<std::size_t>(rows));
  std::vector<std::int64_t> places(ids.size()), logit_rows(static_cast<std::size_t>(runner.max_logit_rows()));
  std::iota(places.begin(), places.end(), 0);
  std::iota(logit_rows.begin(), logit_rows.end(), rows - std::ssize(logit_rows));
  const std::pair<int, int> sequence(static_cast<int>(rows), static_cast<int>(rows));
  runner.step({ids, places, places, make_batch({sequence}, static_cast<int>(block)), logit_rows});
}

}  // namespace weft
