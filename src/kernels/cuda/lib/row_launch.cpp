#include "kernels/cuda/lib/row_launch.h"

#include "base/error.h"
#include "kernels/cuda/lib/block_sizes.h"
#include "kernels/cuda/lib/group_launch.h"

namespace weft::cuda {
namespace {

std::int64_t whole(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

}  // namespace

std::int64_t elements_of_load(DType dtype) { return 16 / dtype_info(dtype).block_bytes; }

LaunchShape plan_rows(std::int64_t rows) {
  return {.blocks = static_cast<std::uint32_t>(rows), .threads = kRowThreads};
}

LaunchShape plan_silu_and_mul(const std::string& kernel, DType x, bool has_tiles, SiluAndMulArguments& arguments) {
  std::int64_t rows = arguments.rows, columns = arguments.columns;
  if (has_tiles) {
    arguments.tiles = static_cast<std::uint32_t>(whole(columns, kScaleTileGroups * kFp4Group));
    rows = whole(rows, kScaleTileRows) * kScaleTileRows;
    columns = std::int64_t{arguments.tiles} * kScaleTileGroups * kFp4Group;
  }
  const std::int64_t slices = whole(columns, kSiluThreads * elements_of_load(x));
  USER_CHECK(rows * slices < kSideLimit, "[{}] {} rows of {} columns are too many for a launch", kernel, arguments.rows,
             arguments.columns);
  arguments.slices = divisor_of(static_cast<std::uint32_t>(slices));
  return {.blocks = static_cast<std::uint32_t>(rows * slices), .threads = kSiluThreads};
}

LaunchShape plan_gather_rows(const std::string& kernel, std::int64_t rows, std::int64_t units,
                             GatherRowsArguments& arguments) {
  USER_CHECK(rows * units < kSideLimit, "[{}] {} rows of {} units are too many for a launch", kernel, rows, units);
  arguments.rows = static_cast<std::uint32_t>(rows);
  arguments.units_of_row = divisor_of(static_cast<std::uint32_t>(units));
  return {.blocks = static_cast<std::uint32_t>(whole(rows * units, kGatherThreads)), .threads = kGatherThreads};
}

}  // namespace weft::cuda
