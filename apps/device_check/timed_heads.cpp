#include "apps/device_check/timed_heads.h"

#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/head_rotation_plan.h"

namespace weft::device_check {

using namespace cuda;

namespace {

PagesPlace pages_of(const TimedBuffers& buffers, std::uint32_t kv_heads) {
  return {.pages = buffers.pages,
          .kind = ElementKind::bf16,
          .block = divisor_of(kPageTokens),
          .heads = kv_heads,
          .head_dim = kTimedHeadDim};
}

}  // namespace

TimedLaunch timed_attention(AttentionDesign design, std::uint32_t decode_tokens) {
  return [=](Launcher& launch, const TimedBuffers& buffers, TimedSize size) {
    const std::uint32_t heads = size.columns / kTimedHeadDim, kv_heads = heads / kQueriesOfKv;
    const std::uint32_t sequences = decode_tokens > 0 ? size.rows : 1;
    const std::uint32_t tokens = decode_tokens > 0 ? decode_tokens : size.rows;
    const AttentionPlan plan = plan_attention({.pages = DType::bf16,
                                               .tokens = size.rows,
                                               .sequences = sequences,
                                               .heads = heads,
                                               .kv_heads = kv_heads,
                                               .head_dim = kTimedHeadDim,
                                               .table_tokens = tokens,
                                               .partial_bytes = kMostPartialBytes,
                                               .multiprocessors = launch.multiprocessors()},
                                              design);
    const AttentionArguments arguments{.query = buffers.x,
                                       .output = buffers.output,
                                       .kind = ElementKind::bf16,
                                       .tokens = size.rows,
                                       .token_stride = size.columns,
                                       .heads = heads,
                                       .scale = 0.1275f,  // log2(e) / sqrt(kTimedHeadDim)
                                       .group = divisor_of(kQueriesOfKv),
                                       .pages = pages_of(buffers, kv_heads),
                                       .has_chunks = true,
                                       .query_starts = buffers.batch,
                                       .lengths = buffers.batch + sequences + 1,
                                       .block_table = buffers.batch + 2 * sequences + 1,
                                       .sequences = sequences,
                                       .max_blocks = tokens / kPageTokens,
                                       .token_tiles = plan.token_tiles,
                                       .sharers = divisor_of(plan.sharers),
                                       .partials = buffers.partials,
                                       .room = plan.room};
    launch(plan.kernel, plan.shape, arguments);
    if (plan.sharers > 1) launch(plan.finish, plan.finish_shape, arguments);
  };
}

TimedLaunch timed_rotation(TimedRotation rotation) {
  return [=](Launcher& launch, const TimedBuffers& buffers, TimedSize size) {
    const std::uint32_t heads = size.columns / kTimedHeadDim, kv_heads = heads / kQueriesOfKv;
    const std::uint32_t kv_columns = kv_heads * kTimedHeadDim, row = size.columns + 2 * kv_columns;
    const auto* x = static_cast<const std::uint16_t*>(buffers.x);
    const auto rows_at = [&](std::uint32_t column, std::uint32_t count) {
      return HeadRows{.x = x + column, .heads = count, .row_stride = row, .head_stride = kTimedHeadDim};
    };
    HeadRotationArguments arguments{.query = rows_at(0, heads),
                                    .key = rows_at(size.columns, kv_heads),
                                    .query_output = buffers.output,
                                    .positions = buffers.numbers,
                                    .table = buffers.angles,
                                    .epsilon = 1e-5f,
                                    .tokens = size.rows,
                                    .head_size = kTimedHeadDim,
                                    .rotary_dim = kTimedHeadDim,
                                    .table_stride = kTimedHeadDim,
                                    .table_kind = ElementKind::bf16,
                                    .normalizes = rotation.normalizes,
                                    .is_neox = true};
    if (rotation.normalizes) arguments.query_weight = arguments.key_weight = buffers.weight;
    if (rotation.fills_pages) {
      arguments.value = rows_at(size.columns + kv_columns, kv_heads);
      arguments.slots = buffers.numbers;
      arguments.pages = pages_of(buffers, kv_heads);
    } else {
      arguments.key_output = buffers.middle;
    }
    arguments.heads = divisor_of(heads + kv_heads + arguments.value.heads);
    const HeadRotationPlan plan = plan_head_rotation(DType::bf16, arguments);
    launch(plan.kernel, plan.shape, arguments);
  };
}

}  // namespace weft::device_check
