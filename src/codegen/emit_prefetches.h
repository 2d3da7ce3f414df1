#pragma once

// What a loop over the columns of a row program fetches for others, through the Builder of emit.h.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

// What each level's loop over the columns computes for an element (tensor/arithmetic_cost.h), of a finished program.
inline std::vector<int> costs_of_levels(const RowProgram& program) {
  std::vector<int> costs(static_cast<std::size_t>(program.levels), 0);
  for (const RowValue& value : program.values)
    if (value.domain == RowDomain::element) costs[static_cast<std::size_t>(value.level)] += row_op_cost(value.op);
  return costs;
}

// Whether the lines of a buffer lie side by side, row behind row.
inline bool is_stream(const RowProgram& program, int buffer) {
  const RowBuffer& at = program.buffers[static_cast<std::size_t>(buffer)];
  return at.placement == RowPlacement() && at.row_stride > 0 && at.numbers < 0;
}

// The buffers that the first level reads and writes.
inline std::vector<int> streams_of_first_level(const RowProgram& program) {
  std::vector<int> streams;
  const auto add = [&](int buffer) {
    if (is_stream(program, buffer) && std::count(streams.begin(), streams.end(), buffer) == 0)
      streams.push_back(buffer);
  };
  for (const RowValue& value : program.values)
    if (value.op == RowOp::load && value.domain == RowDomain::element) add(value.buffer);
  for (const RowStore& store : program.stores)
    if (store.domain == RowDomain::element && program.values[static_cast<std::size_t>(store.value)].level == 0 &&
        store.placement == RowPlacement() && store.offset == 0)
      add(store.buffer);
  return streams;
}

// Which level fetches what the first one reads and writes of the next row: the later one that computes most; -1 for
// none. A core fetches far less by instructions than it does by itself where lines are read in their order (Zen 5: 15
// GB/s and 38), so that it pays only where later levels take long beside what there is to fetch.
inline int fetching_level(const RowProgram& program) {
  constexpr double kLeastCostOfBit = 0.3;
  if (program.levels < 2) return -1;
  const std::vector<int> costs = costs_of_levels(program);
  int later = 0;
  std::int64_t bits = 0;
  for (std::size_t level = 1; level < costs.size(); ++level) later += costs[level];
  for (const int buffer : streams_of_first_level(program)) {
    const RowBuffer& at = program.buffers[static_cast<std::size_t>(buffer)];
    bits += 8 * dtype_info(at.dtype).block_bytes / at.elements_of_unit();
  }
  if (later < kLeastCostOfBit * static_cast<double>(bits)) return -1;
  return static_cast<int>(costs.rend() - std::max_element(costs.rbegin(), costs.rend() - 1)) - 1;
}

// Levels one after another wait for memory when they begin to read and to write, which others would have time for: the
// first of three and more fetches what later ones write, a later one what the first takes of the next row.
template <class Builder>
void emit_prefetches(Builder& builder, const RowProgram& program, int level, typename Builder::Index column,
                     std::int64_t count) {
  constexpr std::int64_t kCacheLine = 64;  // bytes
  const int fetching = fetching_level(program);
  if (fetching < 0) return;
  const auto lines = [&](int buffer, auto fetch) {
    const RowBuffer& at = program.buffers[static_cast<std::size_t>(buffer)];
    const std::int64_t columns = kCacheLine / dtype_info(at.dtype).block_bytes * at.elements_of_unit();
    for (std::int64_t offset = 0; offset < count; offset += columns) fetch(offset);
  };
  if (level == 0 && program.levels > 2)
    for (const RowStore& store : program.stores)
      if (store.domain == RowDomain::element && program.values[static_cast<std::size_t>(store.value)].level > 0 &&
          store.placement == RowPlacement() && is_stream(program, store.buffer))
        lines(store.buffer, [&](std::int64_t offset) { builder.prefetch_store(store, column, offset); });
  if (level == fetching)
    for (const int buffer : streams_of_first_level(program))
      lines(buffer, [&](std::int64_t offset) { builder.prefetch_next(buffer, column, offset); });
}

}  // namespace weft
