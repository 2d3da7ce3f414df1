#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/lib/group_launch.h"

namespace weft::cuda {
namespace {

constexpr const char* kOp = "silu_and_mul_per_block_quant";
constexpr std::int64_t kMostBlockRows = 65535;

}  // namespace

bool SiluAndMulPerBlockQuant::takes_group() const {
  return group_size == 64 || group_size == 128 || (group_size == 32 && codes == DType::i8);
}

std::string SiluAndMulPerBlockQuant::kernel_name() const {
  USER_CHECK(x == DType::bf16 || x == DType::f16 || x == DType::f32, "[{}] x must be of bf16, f16 or f32, but is of {}",
             kOp, dtype_text(x));
  USER_CHECK(codes == DType::f8e4m3 || codes == DType::i8, "[{}] codes must be f8e4m3 or i8, but are {}", kOp,
             dtype_text(codes));
  USER_CHECK(takes_group(), "[{}] group_size must be 64 or 128, or 32 of int8, but is {}", kOp, group_size);
  USER_CHECK(!truncates || (codes == DType::i8 && design == SiluAndMulDesign::fast),
             "[{}] codes towards zero are those of i8 in the fast design", kOp);
  // f32 is not rounded.
  const bool is_wide = !rounds || x == DType::f32;
  return fmt::format("{}{}_{}_{}{}_{}_{}_{}", kOp, design == SiluAndMulDesign::tree ? "_tree" : "", dtype_text(x),
                     dtype_text(codes), truncates ? "_truncated" : "", group_size, is_wide ? "wide" : "rounded",
                     ending_of(mathematics));
}

LaunchShape SiluAndMulPerBlockQuant::plan(SiluAndMulPerBlockQuantArguments& arguments) const {
  USER_CHECK(arguments.columns > 0 && arguments.columns % group_size == 0,
             "[{}] rows must be whole groups of {}, but have {} columns", kOp, group_size, arguments.columns);
  check_sides(kOp, arguments.rows, arguments.columns);
  check_aligned(kOp, "x", arguments.x, 16);
  check_aligned(kOp, "codes", arguments.codes, 8);
  check_aligned(kOp, "scales", arguments.places.scales, 4);
  const std::int64_t groups = arguments.columns / group_size;
  if (design == SiluAndMulDesign::fast)
    return plan_groups(kOp, {.rows = arguments.rows, .groups = groups, .group_size = group_size}, arguments.places,
                       arguments.order);
  USER_CHECK(groups <= kMostBlockRows && arguments.rows < std::int64_t{1} << 31,
             "[{}] the tree design takes at most {} groups a row and 2^31 - 1 rows, but there are {} in {}", kOp,
             kMostBlockRows, groups, arguments.rows);
  return {.blocks = static_cast<std::uint32_t>(arguments.rows),
          .block_rows = static_cast<std::uint32_t>(groups),
          .threads = static_cast<std::uint32_t>(group_size)};
}

}  // namespace weft::cuda
