// attention: device/attention.cu says how. How many blocks a launch has depends on the numbers of tokens and sequences
// and on the width of the block table, never on lengths, so that a captured launch serves whatever lengths come.

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/emulator/run_call.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/group_rules.h"
#include "kernels/cuda/lib/pages.h"
#include "kernels/registry.h"

namespace weft::cuda {
namespace {

enum Operand : std::size_t { kQuery, kKv, kBatch };

constexpr std::int64_t kSideLimit = std::int64_t{1} << 31;
constexpr std::int64_t kSegmentTokens = 256;
// Room for what blocks that share sequences leave: so many segments a row, but no more than so much. One decoded token
// of SmolLM2 takes 2.4 kB a segment.
constexpr std::int64_t kRoomSegments = 64;
constexpr std::int64_t kPartialBytes = 4 << 20;
// Blocks of one warp that sequences are shared among: four for each multiprocessor of an H200.
constexpr std::int64_t kWantedBlocks = 528;
constexpr std::int64_t kMostSharers = 32;

// The kernels' sizes: the head_dim that there is code for, and the rows of a tile.
std::int64_t columns_for(std::int64_t head_dim) { return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256; }
struct Tile {
  const char* name;
  std::int64_t warps;
  std::int64_t rows;
};
Tile tile_for(const KvLayout& kv, bool decodes) {
  if (decodes) return {"decode", 1, 4};
  const std::int64_t columns = columns_for(kv.head_dim);
  if (columns == 256) return {"prefill", 2, 8};
  if (columns == 128 && kv.dtype == DType::f32) return {"prefill", 4, 16};
  return {"prefill", 8, 32};
}

Verdict supports(const KernelRequest& request) {
  const std::optional<Meta>& query = request.operands[kQuery];
  const KvLayout& kv = request.operands[kKv]->kv;
  if (!query->is_tensor() || (query->dtype != DType::bf16 && query->dtype != DType::f16 && query->dtype != DType::f32))
    return Verdict::no(fmt::format("query is {}; bf16, f16 and f32 are supported", query->text()));
  if (Verdict verdict = supports_pages(kv); !verdict) return verdict;
  const std::int64_t most = kv.dtype == DType::f32 ? 128 : 256;
  if (kv.head_dim > most)
    return Verdict::no(
        fmt::format("heads of {} have {} columns; at most {} are supported", dtype_text(kv.dtype), kv.head_dim, most));
  const Shape strides = query->full_strides();
  if (!strides[0].is_number() || strides[0].number() >= kSideLimit || strides[0].number() % 2 != 0 ||
      strides[2] != Dim(1) || (query->shape[1] != Dim(1) && strides[1] != Dim(kv.head_dim)))
    return Verdict::no(fmt::format("query is {}; heads side by side at even strides are supported", query->text()));
  return Verdict::yes();
}

std::string kernel_name(const KvLayout& kv, const Tile& tile) {
  return fmt::format("attention_{}_{}_{}", dtype_text(kv.dtype), columns_for(kv.head_dim), tile.name);
}

std::int64_t partial_bytes(std::int64_t head_dim) { return (head_dim + 2) * static_cast<std::int64_t>(sizeof(float)); }

Dim scratch_bytes(const KernelRequest& request) {
  const Meta& query = *request.operands[kQuery];
  if (!query.shape[0].is_number()) return Dim(kPartialBytes);
  const std::int64_t rows = query.shape[0].number() * query.shape[1].number();
  return Dim(std::min(kPartialBytes, rows * kRoomSegments * partial_bytes(query.shape[2].number())));
}

// Into how many parts the segments of a sequence go.
std::int64_t count_sharers(std::int64_t blocks, std::int64_t table_tokens) {
  const std::int64_t segments = (table_tokens + kSegmentTokens - 1) / kSegmentTokens;
  return std::clamp<std::int64_t>(kWantedBlocks / blocks, 1, std::clamp<std::int64_t>(segments, 1, kMostSharers));
}

void run(const KernelCall& call) {
  const TensorView& query = call.operands[kQuery];
  const KvLayout& kv = call.operands[kKv].meta->kv;
  const Batch& batch = *call.operands[kBatch].as<Batch>();
  const std::int64_t tokens = query.size[0], heads = query.size[1], group = heads / kv.heads;
  if (tokens == 0) return;
  const Tile tile = tile_for(kv, tokens <= batch.sequences);
  const std::string kernel = kernel_name(kv, tile);
  USER_CHECK(tokens * heads < kSideLimit && kv.heads < 65536, "[{}] {} tokens of {} heads are too many for a launch",
             kernel, tokens, heads);
  check_aligned(kernel.c_str(), "query", query.data,
                static_cast<std::uintptr_t>(2 * dtype_info(query.dtype).block_bytes));
  check_aligned(kernel.c_str(), "kv", call.operands[kKv].data, 16);
  const std::int64_t tiles = tokens * group / tile.rows + batch.sequences;
  const std::int64_t sharers = count_sharers(tiles * kv.heads, batch.max_blocks * kv.block);
  constexpr double kLog2E = 1.4426950408889634;
  const AttentionArguments arguments{.query = query.data,
                                     .output = call.results[0].data,
                                     .kind = kind_of(query.dtype),
                                     .tokens = static_cast<std::uint32_t>(tokens),
                                     .token_stride = static_cast<std::uint32_t>(query.stride[0]),
                                     .heads = static_cast<std::uint32_t>(heads),
                                     .scale = static_cast<float>(call.attributes.at("scale").real() * kLog2E),
                                     .group = divisor_of(static_cast<std::uint32_t>(group)),
                                     .pages = pages_place(call.operands[kKv]),
                                     .has_chunks = kv.block * dtype_info(kv.dtype).block_bytes % 16 == 0,
                                     .query_starts = batch.query_starts,
                                     .lengths = batch.lengths,
                                     .block_table = batch.block_table,
                                     .sequences = static_cast<std::uint32_t>(batch.sequences),
                                     .max_blocks = static_cast<std::uint32_t>(batch.max_blocks),
                                     .sharers = divisor_of(static_cast<std::uint32_t>(sharers)),
                                     .partials = reinterpret_cast<float*>(call.scratch.data()),
                                     .room = static_cast<std::uint32_t>(static_cast<std::int64_t>(call.scratch.size()) /
                                                                        (tokens * heads * partial_bytes(kv.head_dim)))};
  run_call(kernel,
           {.blocks = static_cast<std::uint32_t>(tiles * sharers),
            .block_rows = static_cast<std::uint32_t>(kv.heads),
            .threads = static_cast<std::uint32_t>(32 * tile.warps)},
           arguments, call);
  if (sharers == 1) return;
  run_call(fmt::format("finish_attention_{}", columns_for(kv.head_dim)),
           {.blocks = static_cast<std::uint32_t>((tokens * heads + 3) / 4), .threads = 128}, arguments, call);
}

}  // namespace
}  // namespace weft::cuda

KERNELS(cuda, attention) {
  registry.add({.op = "attention",
                .provider = "cuda",
                .supported = weft::cuda::supported,
                .supports = weft::cuda::supports,
                .vector_bytes = 8,  // of f32, as check_aligned wants a query
                .scratch_bytes = weft::cuda::scratch_bytes,
                .run = weft::cuda::run,
                .note = "a block 4 to 32 rows of a KV head; long sequences shared among blocks"});
}
