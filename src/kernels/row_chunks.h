#pragma once

// How rows are shared among threads.

#include <algorithm>
#include <cstdint>

namespace weft {

// Work on this many bytes takes about as long as waking a thread (measured: 64 KiB pass through one core in 5 us).
inline constexpr std::int64_t kSerialBytes = 64 * 1024;

// The rows of one chunk, where each row reads and writes row_bytes. Returns all rows if a second thread would not pay.
// Large chunks let the hardware prefetch a thread's next row; but every thread should get several chunks.
inline std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t row_bytes, int threads) {
  constexpr std::int64_t kChunkBytes = 32 * 1024, kLargestChunkBytes = 256 * 1024, kChunksOfThread = 8;
  row_bytes = std::max<std::int64_t>(row_bytes, 1);
  if (threads == 1 || rows == 1 || rows <= kSerialBytes / row_bytes) return rows;
  const std::int64_t share = rows * row_bytes / (threads * kChunksOfThread);
  return std::max<std::int64_t>(1, std::clamp(share, kChunkBytes, kLargestChunkBytes) / row_bytes);
}

}  // namespace weft
