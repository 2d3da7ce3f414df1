#pragma once

// How many KV pages an engine has.

#include <cstdint>

#include "options/options.h"

namespace weft {

struct KvSizes {
  std::int64_t page_bytes = 1;  // over all layers
  std::int64_t page_tokens = 1;
  std::int64_t context = 1;          // tokens of the longest sequence
  std::int64_t available_bytes = 0;  // after loading
  bool is_on_device = false;
};

// The number that --num-gpu-blocks-override or --kv-cache-memory-bytes requests. Without them, on the host as many as
// fit into a quarter of the available memory: at most --max-num-seqs sequences of full context, at least one. On a
// device, whose memory is taken at once, one sequence of full context. UserError that names the largest --max-model-len
// that fits where the requested pages hold less than one sequence.
std::int64_t kv_page_count(const Options& options, const KvSizes& sizes);

}  // namespace weft
