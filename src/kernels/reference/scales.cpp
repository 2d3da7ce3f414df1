// Layouts of the scales of blocks: spread_blocks, swizzle_scale, unswizzle_scale, pack_scales.

#include <algorithm>
#include <cstring>

#include "kernels/registry.h"
#include "kernels/strided.h"

namespace weft {
namespace {

void spread_blocks(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  const AttributeList& block = call.attributes.at("block").list();
  const std::int64_t rows = block[0].integer(), columns = block[1].integer();
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    const std::int64_t from = index[0] / rows * x.stride[0] + index[1] / columns * x.stride[1];
    store_double(y.dtype, y.data, element_at(y, index, y.rank), load_double(x.dtype, x.data, from));
  });
}

// The index of element (row, column) in memory that is stored tile by tile. The matrix has `columns` columns, in whole
// tiles.
std::int64_t place_in_tiles(std::int64_t row, std::int64_t column, std::int64_t columns) {
  constexpr std::int64_t kTileRows = 128, kTileColumns = 4, kGroups = 32;
  const std::int64_t tile = row / kTileRows * (columns / kTileColumns) + column / kTileColumns;
  const std::int64_t inside = row % kTileRows;
  return tile * kTileRows * kTileColumns + inside % kGroups * 16 + inside / kGroups * kTileColumns +
         column % kTileColumns;
}

void swizzle_scale(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  std::memset(y.data, 0, static_cast<std::size_t>(y.elements()));
  for_each_index(x.size, x.rank, [&](const std::int64_t* index) {
    y.data[place_in_tiles(index[0], index[1], y.size[2])] = x.data[element_at(x, index, x.rank)];
  });
}

void unswizzle_scale(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    y.data[element_at(y, index, y.rank)] = x.data[place_in_tiles(index[0], index[1], x.size[2])];
  });
}

void pack_scales(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& y = call.results[0];
  for_each_index(y.size, y.rank, [&](const std::int64_t* index) {
    std::uint32_t word = 0;
    for (std::int64_t k = 4 * index[1]; k < std::min(4 * index[1] + 4, x.size[1]); ++k) {
      const auto code = std::to_integer<std::uint32_t>(x.data[index[0] * x.stride[0] + k * x.stride[1]]);
      word |= code << 8 * (k % 4);
    }
    store_integer(y.dtype, y.data, element_at(y, index, y.rank), word);
  });
}

}  // namespace
}  // namespace weft

KERNELS(reference, scales) {
  const auto add = [&](const char* op, void (*run)(const KernelCall&)) {
    registry.add({.op = op, .provider = "reference", .run = run});
  };
  add("spread_blocks", spread_blocks);
  add("swizzle_scale", swizzle_scale);
  add("unswizzle_scale", unswizzle_scale);
  add("pack_scales", pack_scales);
}
