#pragma once

// What an Engine reports about its steps: for metrics, logs and admission.

#include <cstdint>

namespace weft {

struct EngineStatistics {
  // After the last step.
  std::int64_t running = 0;     // sequences that hold KV pages
  std::int64_t waiting = 0;     // sequences that hold none yet, or lost them
  std::int64_t pages_used = 0;  // KV pages that sequences hold; pages that only the prefix cache holds count as free
  std::int64_t pages = 0;
  std::int64_t rows = 0;  // tokens that the last step computed

  // Since the Engine was made.
  std::int64_t prefix_queries = 0;  // prompt tokens that were looked up in the prefix cache
  std::int64_t prefix_hits = 0;     // prompt tokens that were found in it
  std::int64_t preemptions = 0;     // sequences that lost their pages
};

// A sequence whose first rows were in a step.
struct FirstScheduled {
  int request = 0;
  std::int64_t cached_tokens = 0;  // of its prompt, found in the prefix cache
};

}  // namespace weft
