#include "engine/schedule/kv_sizing.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace weft {
namespace {

constexpr std::int64_t kPartOfMemory = 4;  // a quarter of what is available
constexpr std::int64_t kMostPages = std::numeric_limits<std::int32_t>::max();

// The pages that an option requests, or 0.
std::int64_t requested_pages(const Options& options, const KvSizes& sizes) {
  const bool has_bytes = options.kv_cache_memory_bytes > 0, has_pages = options.num_gpu_blocks_override > 0;
  USER_CHECK(!has_bytes || !has_pages, "[--num-gpu-blocks-override] excludes --kv-cache-memory-bytes");
  if (has_pages) return options.num_gpu_blocks_override;
  if (!has_bytes) return 0;
  USER_CHECK(options.kv_cache_memory_bytes >= sizes.page_bytes,
             "[--kv-cache-memory-bytes] must be at least the {} bytes of a page of {} tokens, but is {}",
             sizes.page_bytes, sizes.page_tokens, options.kv_cache_memory_bytes);
  return std::min(kMostPages, options.kv_cache_memory_bytes / sizes.page_bytes);
}

}  // namespace

std::int64_t kv_page_count(const Options& options, const KvSizes& sizes) {
  const std::int64_t of_sequence = (sizes.context + sizes.page_tokens - 1) / sizes.page_tokens;
  if (const std::int64_t pages = requested_pages(options, sizes); pages > 0) {
    USER_CHECK(
        pages >= of_sequence,
        "[{}] {} KV pages of {} tokens hold less than one sequence of {} tokens; --max-model-len must be at most "
        "{} here",
        options.num_gpu_blocks_override > 0 ? "--num-gpu-blocks-override" : "--kv-cache-memory-bytes", pages,
        sizes.page_tokens, sizes.context, pages * sizes.page_tokens);
    return pages;
  }
  if (sizes.is_on_device) return of_sequence;
  const std::int64_t fitting = sizes.available_bytes / kPartOfMemory / std::max<std::int64_t>(1, sizes.page_bytes);
  const std::int64_t most = std::max(of_sequence, std::min(kMostPages, of_sequence * options.max_num_seqs));
  return std::clamp(fitting, of_sequence, most);
}

}  // namespace weft
