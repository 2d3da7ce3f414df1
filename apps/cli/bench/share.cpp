#include "apps/cli/bench/share.h"

#include <algorithm>
#include <map>

#include "engine/compile/model_plan.h"

namespace weft {

LeastTime least_time(ModelCompilation& model, const BenchTest& test, const PeakRates& peaks) {
  LeastTime total;
  std::map<std::string, double> seconds_of_limit;
  const auto add = [&](const PlannedStep& step, std::int64_t times) {
    const double seconds = peaks.seconds(step.work) * static_cast<double>(times);
    total.seconds += seconds;
    seconds_of_limit[peaks.limit_of(step.work)] += seconds;
  };
  for (std::int64_t fed = 0; fed < test.prompt; fed += model.max_tokens())
    add(planned_step(model, Phase::prompt, std::min(model.max_tokens(), test.prompt - fed), test.depth + fed),
        test.sequences);
  for (std::int64_t i = 0; i < test.generated; ++i)
    add(planned_step(model, Phase::decode, test.sequences, test.depth + test.prompt + i, test.sequences), 1);
  double most = 0;
  for (const auto& [limit, seconds] : seconds_of_limit)
    if (seconds > most) {
      most = seconds;
      total.limit = limit;
    }
  return total;
}

}  // namespace weft
