// attention in two designs, each a provider; lib/attention_plan.h explains them.

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/attention_window.h"
#include "kernels/cuda/lib/attention_plan.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/group_rules.h"
#include "kernels/cuda/lib/pages.h"
#include "kernels/cuda/lib/run_call.h"
#include "kernels/registry.h"

namespace weft::cuda {
namespace {

enum Operand : std::size_t { kQuery, kKv, kBatch, kSinks, kBias };

// The scratch memory for partial results of blocks that share sequences has room for this number of segments for each
// row (131072 tokens), but at most kMostPartialBytes. One decoded token of SmolLM2 takes 2.4 kB a segment.
constexpr std::int64_t kRoomSegments = 512;

Verdict supports(const KernelRequest& request) {
  const std::optional<Meta>& query = request.operands[kQuery];
  const KvLayout& kv = request.operands[kKv]->kv;
  if (!query->is_tensor() || (query->dtype != DType::bf16 && query->dtype != DType::f16 && query->dtype != DType::f32))
    return Verdict::no(fmt::format("query is {}; bf16, f16 and f32 are supported", query->text()));
  if (Verdict verdict = supports_pages(kv); !verdict) return verdict;
  if (request.operands[kSinks]) return Verdict::no("sinks are not supported");
  if (request.operands[kBias]) return Verdict::no("a bias is not supported");
  if (!request.attributes.at("causal").boolean())
    return Verdict::no("rows attend to later tokens; causal attention is supported");
  if (const double softcap = request.attributes.at("softcap").real(); softcap != 0)
    return Verdict::no(fmt::format("softcap is {}; scores without a bound are supported", softcap));
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

// Queries are converted to the type of the pages for the matrix units. bf16 queries keep their digits in f16
// (attention_mma.cu), but f16 cannot represent all digits of f32, nor bf16 those of f16.
Verdict supports_matrices(const KernelRequest& request) {
  if (Verdict verdict = supports(request); !verdict) return verdict;
  const DType query = request.operands[kQuery]->dtype;
  const KvLayout& kv = request.operands[kKv]->kv;
  if (query == DType::f32 || kv.dtype == DType::f32 || (query == DType::f16 && kv.dtype == DType::bf16))
    return Verdict::no(
        fmt::format("query is {} and KV pages are {}; bf16 with bf16 or f16 and f16 with f16 are "
                    "supported",
                    dtype_text(query), dtype_text(kv.dtype)));
  if (kv.head_dim != 64 && kv.head_dim != 128)
    return Verdict::no(fmt::format("heads have {} columns; 64 and 128 are supported", kv.head_dim));
  return Verdict::yes();
}

Dim scratch_bytes(const KernelRequest& request) {
  const Meta& query = *request.operands[kQuery];
  if (!query.shape[0].is_number()) return Dim(kMostPartialBytes);
  const std::int64_t rows = query.shape[0].number() * query.shape[1].number();
  return Dim(std::min(kMostPartialBytes, rows * kRoomSegments * attention_partial_bytes(query.shape[2].number())));
}

// The tokens of a row of the block table that are in segments which a window reaches.
std::int64_t tokens_in_window(std::int64_t table_tokens, std::int64_t window) {
  return window < table_tokens ? std::min(table_tokens, window + kSegmentTokens) : table_tokens;
}

void run(AttentionDesign design, int multiprocessors, const KernelCall& call) {
  const TensorView& query = call.operands[kQuery];
  const KvLayout& kv = call.operands[kKv].meta->kv;
  const Batch& batch = *call.operands[kBatch].as<Batch>();
  const std::int64_t tokens = query.size[0], heads = query.size[1];
  if (tokens == 0) return;
  const std::int64_t window = attention_window(call.attributes);
  const AttentionPlan plan = plan_attention({.pages = kv.dtype,
                                             .tokens = tokens,
                                             .sequences = batch.sequences,
                                             .heads = heads,
                                             .kv_heads = kv.heads,
                                             .head_dim = kv.head_dim,
                                             .table_tokens = tokens_in_window(batch.max_blocks * kv.block, window),
                                             .partial_bytes = static_cast<std::int64_t>(call.scratch.size()),
                                             .multiprocessors = multiprocessors},
                                            design);
  check_aligned(plan.kernel.c_str(), "query", query.data,
                static_cast<std::uintptr_t>(2 * dtype_info(query.dtype).block_bytes));
  check_aligned(plan.kernel.c_str(), "kv", call.operands[kKv].data, 16);
  constexpr double kLog2E = 1.4426950408889634;
  const AttentionArguments arguments{.query = query.data,
                                     .output = call.results[0].data,
                                     .kind = kind_of(query.dtype),
                                     .tokens = static_cast<std::uint32_t>(tokens),
                                     .token_stride = static_cast<std::uint32_t>(query.stride[0]),
                                     .heads = static_cast<std::uint32_t>(heads),
                                     .scale = static_cast<float>(call.attributes.at("scale").real() * kLog2E),
                                     .group = divisor_of(static_cast<std::uint32_t>(heads / kv.heads)),
                                     .window = static_cast<std::uint32_t>(std::min<std::int64_t>(window, 0x7fffffff)),
                                     .pages = pages_place(call.operands[kKv]),
                                     .has_chunks = kv.block * dtype_info(kv.dtype).block_bytes % 16 == 0,
                                     .query_starts = batch.query_starts,
                                     .lengths = batch.lengths,
                                     .block_table = batch.block_table,
                                     .sequences = static_cast<std::uint32_t>(batch.sequences),
                                     .max_blocks = static_cast<std::uint32_t>(batch.max_blocks),
                                     .token_tiles = plan.token_tiles,
                                     .sharers = divisor_of(plan.sharers),
                                     .partials = reinterpret_cast<float*>(call.scratch.data()),
                                     .room = plan.room};
  run_call(plan.kernel, plan.shape, arguments, call);
  if (plan.sharers > 1) run_call(plan.finish, plan.finish_shape, arguments, call);
}

struct Form {
  const char* provider;
  AttentionDesign design;
};
// The matrix units are for prompts. The kernel that computes a row, and so its bits, then depends on the other rows of
// the call: --batch-invariant uses provider cuda, which has one order of operations for each row.
constexpr std::array kForms = {Form{"cuda", AttentionDesign::multiply_adds},
                               Form{"cuda_mma", AttentionDesign::matrix_units}};

Kernel kernel_of(const Form& form) {
  const bool has_matrices = form.design == AttentionDesign::matrix_units;
  return {.op = "attention",
          .provider = form.provider,
          .supported = supported,
          .supports = has_matrices ? supports_matrices : supports,
          .prepare =
              [design = form.design](Kernel& kernel, const DeviceDescription& device) {
                kernel.run = [design, count = device.multiprocessors](const KernelCall& call) {
                  run(design, count, call);
                };
              },
          .batch_invariant = !has_matrices,
          .vector_bytes = 8,  // two elements of f32, the alignment that check_aligned requires of a query
          .scratch_bytes = scratch_bytes,
          .note = has_matrices ? "a block 64 rows of a KV head by mma; decoded tokens as cuda does"
                               : "a block 4 to 32 rows of a KV head; long sequences shared among blocks"};
}

}  // namespace
}  // namespace weft::cuda

KERNELS(cuda, attention) {
  for (const auto& form : weft::cuda::kForms) registry.add(weft::cuda::kernel_of(form));
}
