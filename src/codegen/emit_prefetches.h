#pragma once

// What a loop over the columns of a row program fetches for others, through the Builder of emit.h.

#include <cstdint>

#include "codegen/heaviest_level.h"
#include "codegen/row_program.h"

namespace weft {

// Levels one after another wait for memory when they begin to read and to write, which others would have time for: the
// first fetches what later ones write, the heaviest what the first reads of the next row. With two levels it costs more
// in the caches, a fifth of rms_norm in f32, than it brings beyond them, where those reach the copy without.
template <class Builder>
void emit_prefetches(Builder& builder, const RowProgram& program, int level, typename Builder::Index column,
                     std::int64_t count) {
  constexpr std::int64_t kCacheLine = 64;  // bytes
  if (program.levels < 3) return;
  const auto lines = [&](int buffer, auto fetch) {
    const RowBuffer& at = program.buffers[static_cast<std::size_t>(buffer)];
    const std::int64_t columns = kCacheLine / dtype_info(at.dtype).block_bytes * at.elements_of_unit();
    for (std::int64_t offset = 0; offset < count; offset += columns)
      if (at.row_stride > 0 && at.numbers < 0) fetch(offset);
  };
  if (level == 0)
    for (const RowStore& store : program.stores)
      if (store.domain == RowDomain::element && program.values[static_cast<std::size_t>(store.value)].level > 0 &&
          store.placement == RowPlacement())
        lines(store.buffer, [&](std::int64_t offset) { builder.prefetch_store(store, column, offset); });
  if (level == heaviest_level(program))
    for (const RowValue& value : program.values)
      if (value.op == RowOp::load && value.domain == RowDomain::element &&
          program.buffers[static_cast<std::size_t>(value.buffer)].placement == RowPlacement())
        lines(value.buffer, [&](std::int64_t offset) { builder.prefetch_next(value.buffer, column, offset); });
}

}  // namespace weft
