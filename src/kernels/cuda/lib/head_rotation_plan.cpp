#include "kernels/cuda/lib/head_rotation_plan.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/lib/block_sizes.h"

namespace weft::cuda {
namespace {

constexpr std::uint32_t kVectorBytes = 16;

bool begins_at_vector(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0; }

bool has_vectors(const HeadRows& rows, std::uint32_t tokens, std::uint32_t columns) {
  if (rows.heads == 0) return true;
  return begins_at_vector(rows.x) && (tokens == 1 || rows.row_stride % columns == 0) &&
         (rows.heads == 1 || rows.head_stride % columns == 0);
}

// Whether all sizes and offsets are multiples of vectors of `columns` columns. Angles of a vector are read as vectors,
// too.
bool has_vectors(const HeadRotationArguments& arguments, std::uint32_t columns) {
  const std::uint32_t angles = arguments.is_neox ? columns : columns / 2;
  if (arguments.head_size % columns != 0 || arguments.rotary_dim / 2 % angles != 0) return false;
  if (arguments.rotary_dim != 0 && arguments.table_stride % angles != 0) return false;
  for (const HeadRows* rows : {&arguments.query, &arguments.key, &arguments.value})
    if (!has_vectors(*rows, arguments.tokens, columns)) return false;
  for (const void* address :
       {arguments.table, arguments.query_weight, arguments.key_weight, static_cast<const void*>(arguments.query_output),
        static_cast<const void*>(arguments.key_output), static_cast<const void*>(arguments.pages.pages)})
    if (!begins_at_vector(address)) return false;
  return true;
}

}  // namespace

HeadRotationPlan plan_head_rotation(DType x, const HeadRotationArguments& arguments) {
  const auto of_vector = static_cast<std::uint32_t>(kVectorBytes / dtype_info(x).block_bytes);
  const bool by_vectors = has_vectors(arguments, of_vector);
  const std::string kernel = fmt::format("head_rotation_{}{}", dtype_text(x), by_vectors ? "" : "_pairs");
  const std::int64_t heads = std::int64_t{arguments.tokens} * arguments.heads.divisor;
  USER_CHECK(heads < kSideLimit, "[{}] {} heads in all are too many for a launch", kernel, heads);
  const std::int64_t of_block =
      std::int64_t{kRotationThreads} * (by_vectors ? of_vector : kColumnsOfPair) / kColumnsOfTurn;
  return {kernel,
          {.blocks = static_cast<std::uint32_t>((heads + of_block - 1) / of_block), .threads = kRotationThreads}};
}

}  // namespace weft::cuda
