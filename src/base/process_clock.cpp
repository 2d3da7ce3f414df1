#include "base/process_clock.h"

#include <ctime>

namespace weft {

Stopwatch watch_from_process_start() {
  const auto now = Stopwatch::Clock::now();
  std::timespec used{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return Stopwatch(now);
  return Stopwatch(now - std::chrono::seconds(used.tv_sec) - std::chrono::nanoseconds(used.tv_nsec));
}

}  // namespace weft
