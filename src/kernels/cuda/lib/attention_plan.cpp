#include "kernels/cuda/lib/attention_plan.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"

namespace weft::cuda {
namespace {

constexpr std::int64_t kSegmentTokens = 256;
// Blocks of one warp that sequences are shared among: four for each multiprocessor of an H200.
constexpr std::int64_t kWantedBlocks = 528;
constexpr std::int64_t kMostSharers = 32;
// Rows of a sequence, on the average, from which on the matrix units are worth it: those of one warp.
constexpr std::int64_t kMatrixRows = 16;

// The kernels' sizes: the head_dim that there is code for, and the rows of a tile.
std::int64_t columns_for(std::int64_t head_dim) { return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256; }
struct Tile {
  const char* name;
  std::int64_t warps;
  std::int64_t rows;
};
Tile tile_for(const AttentionSizes& sizes, AttentionDesign design) {
  if (sizes.tokens <= sizes.sequences) return {"decode", 1, 4};
  const std::int64_t rows = sizes.tokens * (sizes.heads / sizes.kv_heads);
  if (design == AttentionDesign::matrix_units && rows >= kMatrixRows * sizes.sequences) return {"mma", 4, 64};
  const std::int64_t columns = columns_for(sizes.head_dim);
  if (columns == 256) return {"prefill", 2, 8};
  if (columns == 128 && sizes.pages == DType::f32) return {"prefill", 4, 16};
  return {"prefill", 8, 32};
}

// Into how many parts the segments of a sequence go.
std::int64_t count_sharers(std::int64_t blocks, std::int64_t table_tokens) {
  const std::int64_t segments = (table_tokens + kSegmentTokens - 1) / kSegmentTokens;
  return std::clamp<std::int64_t>(kWantedBlocks / blocks, 1, std::clamp<std::int64_t>(segments, 1, kMostSharers));
}

}  // namespace

AttentionPlan plan_attention(const AttentionSizes& sizes, AttentionDesign design) {
  const Tile tile = tile_for(sizes, design);
  AttentionPlan plan;
  plan.kernel = fmt::format("attention_{}_{}_{}", dtype_text(sizes.pages), columns_for(sizes.head_dim), tile.name);
  USER_CHECK(sizes.tokens * sizes.heads < kSideLimit && sizes.kv_heads < 65536,
             "[{}] {} tokens of {} heads are too many for a launch", plan.kernel, sizes.tokens, sizes.heads);
  const std::int64_t tiles = sizes.tokens * (sizes.heads / sizes.kv_heads) / tile.rows + sizes.sequences;
  const std::int64_t sharers = count_sharers(tiles * sizes.kv_heads, sizes.table_tokens);
  plan.sharers = static_cast<std::uint32_t>(sharers);
  plan.shape = {.blocks = static_cast<std::uint32_t>(tiles * sharers),
                .block_rows = static_cast<std::uint32_t>(sizes.kv_heads),
                .threads = static_cast<std::uint32_t>(32 * tile.warps)};
  if (sharers == 1) return plan;
  plan.finish = fmt::format("finish_attention_{}", columns_for(sizes.head_dim));
  plan.finish_shape = {.blocks = static_cast<std::uint32_t>((sizes.tokens * sizes.heads + 3) / 4), .threads = 128};
  return plan;
}

std::int64_t attention_partial_bytes(std::int64_t head_dim) {
  return (head_dim + 2) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace weft::cuda
