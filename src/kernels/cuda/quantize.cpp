// Quantization per group and per token, as separate ops; the kernels are in device/per_token_group_quant.cu and
// device/dynamic_per_token_quant.cu.

#include <fmt/core.h>

#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/group_rules.h"
#include "kernels/cuda/lib/row_launch.h"
#include "kernels/cuda/lib/run_call.h"
#include "kernels/registry.h"

namespace weft::cuda {
namespace {

Verdict supports_groups_alone(const KernelRequest& request) {
  if (Verdict verdict = float_matrix(request.operands[0], "x"); !verdict) return verdict;
  return supports_groups(request, 1);
}

void run_groups(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& codes = call.results[0];
  const std::int64_t group = call.attributes.at("group_size").integer();
  const std::string kernel =
      fmt::format("per_token_group_quant_{}_{}{}_{}", dtype_text(x.dtype), dtype_text(codes.dtype),
                  truncates(call.attributes) ? "_truncated" : "", group);
  check_sides(kernel, x);
  PerTokenGroupQuantArguments arguments{.x = x.data,
                                        .codes = codes.data,
                                        .places = scale_places(call.results[1]),
                                        .rule = group_rule(call, 1),
                                        .rows = static_cast<std::uint32_t>(x.size[0]),
                                        .columns = static_cast<std::uint32_t>(x.size[1])};
  check_aligned(kernel.c_str(), "x", x.data, 16);
  check_aligned(kernel.c_str(), "codes", codes.data, 8);
  const GroupCounts counts{.rows = x.size[0], .groups = x.size[1] / group, .group_size = group};
  const LaunchShape shape = plan_groups(kernel.c_str(), counts, arguments.places, arguments.order);
  run_call(kernel, shape, arguments, call);
}

Verdict supports_tokens_alone(const KernelRequest& request) {
  const std::optional<Meta>& x = request.operands[0];
  if (Verdict verdict = float_matrix(x, "x"); !verdict) return verdict;
  if (Verdict verdict = whole_loads(*x); !verdict) return verdict;
  return supports_codes(request);
}

void run_tokens(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& codes = call.results[0];
  const std::string kernel = fmt::format("dynamic_per_token_quant_{}_{}", dtype_text(x.dtype), dtype_text(codes.dtype));
  check_sides(kernel, x);
  check_aligned(kernel.c_str(), "x", x.data, 16);
  check_aligned(kernel.c_str(), "codes", codes.data, static_cast<std::uintptr_t>(elements_of_load(x.dtype)));
  const DynamicPerTokenQuantArguments arguments{.x = x.data,
                                                .output = codes.data,
                                                .places = scale_places(call.results[1]),
                                                .rule = token_rule(call, 1),
                                                .columns = static_cast<std::uint32_t>(x.size[1])};
  run_call(kernel, plan_rows(x.size[0]), arguments, call);
}

}  // namespace
}  // namespace weft::cuda

KERNELS(cuda, quantize) {
  using namespace weft::cuda;
  for (const char* op : {"per_token_group_quant_fp8", "per_token_group_quant_int8"})
    registry.add({.op = op,
                  .provider = "cuda",
                  .supported = supported,
                  .supports = supports_groups_alone,
                  .vector_bytes = 16,
                  .run = run_groups,
                  .note = "sub-warps of 2, 4 or 8 lanes a group, 16 elements a lane"});
  for (const char* op : {"dynamic_per_token_scaled_fp8_quant", "dynamic_per_token_scaled_int8_quant"})
    registry.add({.op = op,
                  .provider = "cuda",
                  .supported = supported,
                  .supports = supports_tokens_alone,
                  .vector_bytes = 16,
                  .run = run_tokens,
                  .note = "a block of 256 threads a row"});
}
