// index_select of rows or of columns on the CPU: copies them unchanged. Blocks of rows are shared among the threads.

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/packing.h"
#include "kernels/registry.h"
#include "kernels/row_chunks.h"

namespace weft::cpu {
namespace {

bool takes_columns(std::int64_t dim, std::size_t rank) {
  return rank > 1 && (dim == -1 || dim == static_cast<std::int64_t>(rank) - 1);
}

Verdict supports(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &index = *request.operands[1];
  const std::int64_t dim = request.attributes.at("dim").integer();
  if (dim != 0 && !takes_columns(dim, x.rank()))
    return Verdict::no(fmt::format("takes rows or columns, not parts of dim {}", dim));
  if (dim != 0 && !has_addresses(x.dtype)) return Verdict::no(fmt::format("no columns of {}", dtype_text(x.dtype)));
  if (Verdict verdict = none_is_packed(request); !verdict) return verdict;
  if (!x.is_contiguous() || !index.is_contiguous()) return Verdict::no("an operand is not contiguous");
  return Verdict::yes();
}

template <class Element, class Index>
void select_columns(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const Index* columns = call.operands[1].as<const Index>();
  const std::int64_t width = x.size[x.rank - 1], count = call.operands[1].size[0];
  for (std::int64_t i = 0; i < count; ++i)
    USER_CHECK(columns[i] >= 0 && columns[i] < width, "[index_select] index {} is outside [0, {})", columns[i], width);
  if (call.results[0].elements() == 0) return;
  const std::int64_t rows = x.elements() / width;
  const std::int64_t chunk =
      rows_of_chunk(rows, 2 * count * static_cast<std::int64_t>(sizeof(Element)), call.threads.threads());
  call.threads.run((rows + chunk - 1) / chunk, [&](std::int64_t number, int) {
    for (std::int64_t row = number * chunk; row < std::min(rows, (number + 1) * chunk); ++row) {
      const Element* from = x.as<const Element>() + row * width;
      Element* to = call.results[0].as<Element>() + row * count;
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[columns[i]];
    }
  });
}

template <class Element>
void select_columns_of(const KernelCall& call) {
  call.operands[1].dtype == DType::i32 ? select_columns<Element, std::int32_t>(call)
                                       : select_columns<Element, std::int64_t>(call);
}

void run_columns(const KernelCall& call) {
  switch (dtype_info(call.operands[0].dtype).block_bytes) {
    case 1:
      return select_columns_of<std::uint8_t>(call);
    case 2:
      return select_columns_of<std::uint16_t>(call);
    case 4:
      return select_columns_of<std::uint32_t>(call);
    default:
      return select_columns_of<std::uint64_t>(call);
  }
}

void run(const KernelCall& call) {
  if (call.attributes.at("dim").integer() != 0) return run_columns(call);
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
