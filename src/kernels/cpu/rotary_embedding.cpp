// rotary_embedding, and fused_qk_norm_rope with the normalization of each head before it; for NeoX halves and GPT-J
// pairs, also in only a part of the head. Parallel over tokens. Query and key are read in place, as columns of one
// product. The results are contiguous rows, so nothing is overwritten.

#include "kernels/cpu/lib/head_rotation.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

constexpr RotationOperands kPlain{.cos_sin_cache = 3};
constexpr RotationOperands kNormed{.cos_sin_cache = 5, .query_weight = 3, .key_weight = 4};

template <const RotationOperands& operands>
Verdict supports(const KernelRequest& request) {
  return supports_rotation(request, operands);
}

template <const RotationOperands& operands>
void run(const RowWiseKernels& kernels, const KernelCall& call) {
  const HeadRotation rotation(kernels, call, operands);
  const RowSpace rows(
      {&call.results[0], &call.operands[kRotationQuery], &call.results[1], &call.operands[kRotationKey]});
  const std::int64_t row_bytes = 2 * rotation.columns() * dtype_info(call.results[0].dtype).block_bytes;
  rows.run(call.threads, row_bytes, [&](const RowRun& run) {
    rotation.run(run.first, run.count, {run.data[1], run.stride[1], run.data[0], run.stride[0]},
                 {run.data[3], run.stride[3], run.data[2], run.stride[2]});
  });
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, rotary_embedding) {
  using namespace weft::cpu;
  registry.add({.op = "rotary_embedding",
                .provider = "cpu",
                .supports = supports<kPlain>,
                .yields = yields_rotation,
                .prepare = prepare_row_wise<run<kPlain>>,
                .note = kRowWiseNote});
  registry.add({.op = "fused_qk_norm_rope",
                .provider = "cpu",
                .supports = supports<kNormed>,
                .yields = yields_rotation,
                .prepare = prepare_row_wise<run<kNormed>>,
                .note = kRowWiseNote});
}
