#pragma once

// What an Engine reports about its steps: for metrics, logs and admission.

#include <cstdint>

namespace weft {

struct EngineStatistics {
  // After the last step.
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t deferred = 0;    // of `waiting`: those that wait for a prefix which another sequence computes
  std::int64_t pages_used = 0;  // KV pages that sequences hold; pages that only the prefix cache has are free
  std::int64_t pages = 0;
  std::int64_t rows = 0;  // tokens that the last step computed

  // Since the begin.
  std::int64_t prefix_cache_queries = 0;  // tokens of sequences that were looked up; preempted ones count once
  std::int64_t prefix_cache_hits = 0;     // of these, tokens that were found
  std::int64_t preemptions = 0;           // sequences that lost their pages
  std::int64_t proposed_tokens = 0;       // of speculative decoding
  std::int64_t kept_tokens = 0;           // of these, tokens that became part of an answer
};

// A sequence whose first rows were in a step.
struct FirstScheduled {
  int request = 0;
  std::int64_t cached_tokens = 0;  // of its prompt, found in the prefix cache
};

}  // namespace weft
