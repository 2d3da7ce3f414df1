#pragma once

// How attention over KV pages is launched. Two designs:
//
//   multiply_adds  device/attention.cu: fused multiply-adds, in one fixed order for each row whatever stands beside it.
//                  Any head_dim that pages have; f32, f16 and bf16.
//   matrix_units   device/attention_mma.cu: products by mma, in tiles of 64 rows. 16-bit pages with heads of 64 or 128
//                  columns. Where sequences have fewer than 16 rows on the average (decoded tokens, mostly) most of a
//                  tile would stand idle: multiply_adds takes such calls.
//
// Which kernel runs, and how many blocks, depends on the sizes here alone: never on lengths, so that a captured launch
// serves whatever lengths come. A row of multiply_adds has the same bits however many blocks share its sequence, so
// that the number of sequences may decide that; of matrix_units it has not, as its kernel says (batch_invariant).

#include <string>

#include "kernels/cuda/lib/block_sizes.h"
#include "kernels/cuda/lib/launch.h"
#include "tensor/dtype.h"

namespace weft::cuda {

enum class AttentionDesign : std::uint8_t { multiply_adds, matrix_units };

struct AttentionSizes {
  DType pages = DType::f16;
  std::int64_t tokens = 0;  // of this step
  std::int64_t sequences = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t table_tokens = 0;   // that a row of the block table has room for
  std::int64_t partial_bytes = 0;  // for what blocks leave that share a sequence
  std::int64_t multiprocessors = 0;
};

struct AttentionPlan {
  std::string kernel;
  LaunchShape shape;
  // AttentionArguments; room counts only where there are several sharers.
  std::uint32_t token_tiles = 0;
  std::uint32_t sharers = 1;
  std::uint32_t room = 0;
  // Where sharers are more than 1: launched behind the other, with the same arguments.
  std::string finish;
  LaunchShape finish_shape;
};
// `tokens` must be at least 1. UserError for more rows or heads than a launch has.
AttentionPlan plan_attention(const AttentionSizes& sizes, AttentionDesign design);

// Among how many blocks, 1 to 64 and no more than `segments`, the segments of each tile are shared: the fewest that are
// done within a quarter of the least time. `slots` blocks run side by side, and what takes time is the segments of a
// block, round for round.
std::int64_t count_sharers(std::int64_t tiles, std::int64_t segments, std::int64_t slots);

// Bytes that a row leaves of a segment where blocks share a sequence, and the most that all rows are
// given room for: 63 segments each for 16 tokens of 32 heads of 128 columns. With four queries to a KV head, writing
// and reading it moves a thirtieth of the bytes of K and V.
std::int64_t attention_partial_bytes(std::int64_t head_dim);
constexpr std::int64_t kMostPartialBytes = 16 << 20;

}  // namespace weft::cuda
