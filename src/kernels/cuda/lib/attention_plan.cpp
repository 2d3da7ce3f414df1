#include "kernels/cuda/lib/attention_plan.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"

namespace weft::cuda {
namespace {

constexpr std::int64_t kMostSharers = 64;
// The number of blocks of decoded tokens that run at once on a multiprocessor: one for each of its schedulers, because
// in most of them only one warp has rows and the others load.
constexpr std::int64_t kDecodingBlocks = 4;
// The average number of rows of a sequence from which on the matrix units are faster: the rows of one warp.
constexpr std::int64_t kMatrixRows = kMatrixRowsOfWarp;

// The sizes of the kernels: the compiled head_dim, and the rows of a tile.
int columns_for(std::int64_t head_dim) { return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256; }
struct Tile {
  const char* name;
  std::int64_t warps;
  std::int64_t rows;  // of all warps
  // The number of blocks that run at once on a multiprocessor: kDecodingBlocks, else the kernel's launch bounds.
  std::int64_t resident;
};
Tile tile_for(const AttentionSizes& sizes, AttentionDesign design) {
  const int columns = columns_for(sizes.head_dim);
  const int decode_warps = columns == 256 ? kDecodeWarpsOf256 : kDecodeWarps;
  if (sizes.tokens <= sizes.sequences) return {"decode", decode_warps, decode_warps * kRowsOfWarp, kDecodingBlocks};
  const std::int64_t rows = sizes.tokens * (sizes.heads / sizes.kv_heads);
  if (design == AttentionDesign::matrix_units && rows >= kMatrixRows * sizes.sequences)
    return {"mma", kMatrixWarps, kMatrixWarps * kMatrixRowsOfWarp, kPrefillBlocks};
  const bool is_wide = columns == 128 && sizes.pages == DType::f32;
  const int warps = columns == 256 ? kPrefillWarpsOf256 : is_wide ? kPrefillWarpsOf128F32 : kPrefillWarps;
  return {"prefill", warps, warps * kRowsOfWarp, kPrefillBlocks};
}

std::int64_t whole(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

// The number of segments for each row that fit the scratch memory.
std::int64_t room_for(const AttentionSizes& sizes) {
  return sizes.partial_bytes / (sizes.tokens * sizes.heads * attention_partial_bytes(sizes.head_dim));
}

}  // namespace

std::int64_t count_sharers(std::int64_t tiles, std::int64_t segments, std::int64_t slots) {
  const std::int64_t most = std::clamp<std::int64_t>(segments, 1, kMostSharers);
  const auto time = [&](std::int64_t sharers) { return whole(tiles * sharers, slots) * whole(segments, sharers); };
  std::int64_t least = time(1);
  for (std::int64_t sharers = 2; sharers <= most; ++sharers) least = std::min(least, time(sharers));
  std::int64_t sharers = 1;
  while (4 * time(sharers) > 5 * least) ++sharers;
  return sharers;
}

AttentionPlan plan_attention(const AttentionSizes& sizes, AttentionDesign design) {
  const Tile tile = tile_for(sizes, design);
  AttentionPlan plan;
  plan.kernel = fmt::format("attention_{}_{}_{}", dtype_text(sizes.pages), columns_for(sizes.head_dim), tile.name);
  USER_CHECK(sizes.tokens * sizes.heads < kSideLimit && sizes.kv_heads < 65536,
             "[{}] {} tokens of {} heads are too many for a launch", plan.kernel, sizes.tokens, sizes.heads);
  const std::int64_t group = sizes.heads / sizes.kv_heads, of_token = whole(group, tile.rows);
  const std::int64_t by_sequence = sizes.tokens * group / tile.rows + sizes.sequences;
  const std::int64_t tiles = std::min(sizes.tokens * of_token, by_sequence);
  if (tiles < by_sequence) plan.token_tiles = static_cast<std::uint32_t>(of_token);
  // Sequences that do not fit the scratch memory are not shared.
  const std::int64_t segments = std::min(whole(sizes.table_tokens, kSegmentTokens), room_for(sizes));
  const std::int64_t sharers =
      count_sharers(tiles * sizes.kv_heads, segments, std::max<std::int64_t>(sizes.multiprocessors, 1) * tile.resident);
  plan.sharers = static_cast<std::uint32_t>(sharers);
  plan.room = static_cast<std::uint32_t>(room_for(sizes));
  plan.shape = {.blocks = static_cast<std::uint32_t>(tiles * sharers),
                .block_rows = static_cast<std::uint32_t>(sizes.kv_heads),
                .threads = static_cast<std::uint32_t>(32 * tile.warps)};
  if (sharers == 1) return plan;
  plan.finish = fmt::format("finish_attention_{}", columns_for(sizes.head_dim));
  plan.finish_shape = {.blocks = static_cast<std::uint32_t>(whole(sizes.tokens * sizes.heads, kFinishWarps)),
                       .threads = 32 * kFinishWarps};
  return plan;
}

std::int64_t attention_partial_bytes(std::int64_t head_dim) {
  return (head_dim + 2) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace weft::cuda
