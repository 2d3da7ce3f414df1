#pragma once

// Plans the launch of attention over KV pages. Two designs:
//
//   multiply_adds  device/attention.cu: fused multiply-adds, in one fixed order for each row, independent of others.
//                  Any head_dim of pages; f32, f16 and bf16.
//   matrix_units   device/attention_mma.cu: products by mma, in tiles of 64 rows. 16-bit pages with heads of 64 or 128
//                  columns. If sequences have fewer than 16 rows on average (mostly decoded tokens), most of a tile
//                  would be idle, and multiply_adds takes the call.
//
// The kernel and the number of blocks depend only on the sizes here, never on lengths, so that a captured launch serves
// all later lengths. A row of multiply_adds has the same bits for any number of blocks that share its sequence, so the
// number of sequences may decide it. This is not true of matrix_units, and its kernel declares so (batch_invariant).

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
  std::int64_t table_tokens = 0;   // that fit a row of the block table
  std::int64_t partial_bytes = 0;  // for partial results of blocks that share a sequence
  std::int64_t multiprocessors = 0;
};

struct AttentionPlan {
  std::string kernel;
  LaunchShape shape;
  // Fields of AttentionArguments; `room` is used only if there are several sharers.
  std::uint32_t token_tiles = 0;
  std::uint32_t sharers = 1;
  std::uint32_t room = 0;
  // If there is more than one sharer: the kernel that is launched after the other one, with the same arguments.
  std::string finish;
  LaunchShape finish_shape;
};
// `tokens` must be at least 1. Throws UserError for more rows or heads than a launch can have.
AttentionPlan plan_attention(const AttentionSizes& sizes, AttentionDesign design);

// The number of blocks, 1 to 64 and at most `segments`, that share the segments of each tile: the smallest number that
// needs at most a quarter more than the least time. `slots` blocks run at once, and the time is the number of rounds
// times the segments of a block.
std::int64_t count_sharers(std::int64_t tiles, std::int64_t segments, std::int64_t slots);

// The bytes of a row's partial result for one segment if blocks share a sequence, and the maximum for all rows: 63
// segments each for 16 tokens of 32 heads of 128 columns. With four queries to a KV head, writing and reading it moves
// a thirtieth of the bytes of K and V.
std::int64_t attention_partial_bytes(std::int64_t head_dim);
constexpr std::int64_t kMostPartialBytes = 16 << 20;

}  // namespace weft::cuda
