// index_select of rows on the CPU: copies rows unchanged. Blocks of rows are shared among the threads.

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/packing.h"
#include "kernels/registry.h"
#include "kernels/row_chunks.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &index = *request.operands[1];
  if (request.attributes.at("dim").integer() != 0)
    return Verdict::no(fmt::format("takes rows, not parts of dim {}", request.attributes.at("dim").integer()));
  if (Verdict verdict = none_is_packed(request); !verdict) return verdict;
  if (!x.is_contiguous() || !index.is_contiguous()) return Verdict::no("an operand is not contiguous");
  return Verdict::yes();
}

void run(const KernelCall& call) {
  const TensorView &x = call.operands[0], &index = call.operands[1], &result = call.results[0];
  const std::int64_t rows = index.size[0];
  if (result.elements() == 0) return;
  const std::int64_t bytes = bytes_of(x.dtype, result.elements() / rows);
  const std::int64_t chunk = rows_of_chunk(rows, 2 * bytes, call.threads.threads());
  call.threads.run((rows + chunk - 1) / chunk, [&](std::int64_t number, int) {
    for (std::int64_t i = number * chunk; i < std::min(rows, (number + 1) * chunk); ++i) {
      const std::int64_t row = index_at(index, i);
      USER_CHECK(row >= 0 && row < x.size[0], "[index_select] index {} is outside [0, {})", row, x.size[0]);
      std::memcpy(result.data + i * bytes, x.data + row * bytes, static_cast<std::size_t>(bytes));
    }
  });
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, index_select) {
  registry.add({.op = "index_select",
                .provider = "cpu",
                .supports = weft::cpu::supports,
                .run = weft::cpu::run,
                .note = "blocks of rows over the threads"});
}
