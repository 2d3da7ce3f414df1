#pragma once

// What a loop over the columns of a row program fetches for others, through the Builder of emit.h.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "codegen/row_program.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

inline bool is_of_small_floats(const RowValue& value) {
  return value.op == RowOp::convert && dtype_info(value.dtype).block_bytes == 1 && is_floating(value.dtype);
}

// What each level's loop over the columns computes for an element (tensor/arithmetic_cost.h), of a finished program.
inline std::vector<int> costs_of_levels(const RowProgram& program) {
  std::vector<int> costs(static_cast<std::size_t>(program.levels), 0);
  for (const RowValue& value : program.values)
    if (value.domain == RowDomain::element)
      costs[static_cast<std::size_t>(value.level)] +=
          is_of_small_floats(value) ? kSmallFloatConversionCost : row_op_cost(value.op);
  return costs;
}

inline constexpr std::int64_t kCacheLine = 64;  // bytes

// Of a line; 0 where columns lie farther apart.
inline std::int64_t columns_of_line(const RowBuffer& buffer) {
  return kCacheLine / dtype_info(buffer.dtype).block_bytes * buffer.elements_of_unit() / buffer.placement.stride;
}

// Whether rows lie one behind another, several columns in a line, and none of another stream.
inline bool is_stream(const RowProgram& program, int buffer) {
  const RowBuffer& at = program.buffers[static_cast<std::size_t>(buffer)];
  return at.row_stride > 0 && at.numbers < 0 && at.behind < 0 && columns_of_line(at) > 1;
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

// Of a column of each of them, with what lies between columns.
inline std::int64_t bits_of_first_level(const RowProgram& program) {
  std::int64_t bits = 0;
  for (const int buffer : streams_of_first_level(program))
    bits += 8 * kCacheLine / columns_of_line(program.buffers[static_cast<std::size_t>(buffer)]);
  return bits;
}

// Which levels fetch what the first one reads and writes of the next row, each an equal part of it: later ones, if they
// take longer than the first, both of two, so that memory has work for longer, or of more the one that computes most. A
// core fetches far less by instructions than it does by itself where lines are read in their order (Zen 5: 15 GB/s and
// 38), so that it pays only where they take long beside what there is to fetch.
inline std::vector<int> fetching_levels(const RowProgram& program) {
  constexpr double kLeastCostOfBit = 0.3;
  if (program.levels < 2) return {};
  const std::vector<int> costs = costs_of_levels(program);
  const int later = std::accumulate(costs.begin() + 1, costs.end(), 0);
  if (later < costs[0] || later < kLeastCostOfBit * static_cast<double>(bits_of_first_level(program))) return {};
  if (program.levels == 3) return {1, 2};
  return {static_cast<int>(costs.rend() - std::max_element(costs.rbegin(), costs.rend() - 1)) - 1};
}

// Whether the first level fetches what it reads a little later. A core that waits for memory has a few hundred
// operations begun: where that is few lines' worth, most of what it could fetch at once is not asked for (Sapphire
// Rapids: 17 GB/s with 25 operations to a line, 29 where they are fetched). Where there is little to compute it sees
// far enough, and in its caches instructions that fetch would only cost.
inline bool fetches_ahead(const RowProgram& program) {
  constexpr double kLeastCostOfBit = 0.15;
  if (!fetching_levels(program).empty()) return false;
  const std::vector<int> costs = costs_of_levels(program);
  int all = std::accumulate(costs.begin(), costs.end(), 0);
  // To decode and to reduce, which costs_of_levels leaves out.
  for (const int buffer : streams_of_first_level(program))
    if (program.buffers[static_cast<std::size_t>(buffer)].dtype != DType::f32) all += kConversionCost / 2;
  for (const RowValue& value : program.values)
    if (is_reduction(value.op) && value.level == 1) all += value.op == RowOp::row_signed_max ? 3 : 1;
  return all >= kLeastCostOfBit * static_cast<double>(bits_of_first_level(program));
}

// Levels one after another wait for memory when they begin to read and to write, which others would have time for: the
// first of three and more fetches what later ones write, later ones what the first takes of the next row. Else the
// first may fetch for itself.
template <class Builder>
void emit_prefetches(Builder& builder, const RowProgram& program, int level, typename Builder::Index column,
                     std::int64_t count) {
  constexpr std::int64_t kLinesAhead = 32;
  const std::vector<int> fetching = fetching_levels(program);
  const auto columns_of = [&](int buffer) {
    return columns_of_line(program.buffers[static_cast<std::size_t>(buffer)]);
  };
  const auto lines = [&](int buffer, std::int64_t columns, auto fetch) {
    for (std::int64_t offset = 0; offset < columns; offset += columns_of(buffer)) fetch(offset);
  };
  if (level == 0 && fetches_ahead(program))
    for (const int buffer : streams_of_first_level(program))
      if (!program.buffers[static_cast<std::size_t>(buffer)].is_output)
        lines(buffer, count, [&](std::int64_t offset) {
          builder.prefetch_ahead(buffer, column, kLinesAhead * columns_of(buffer), offset);
        });
  if (level == 0 && !fetching.empty() && program.levels > 2)
    for (const RowStore& store : program.stores)
      if (store.domain == RowDomain::element && program.values[static_cast<std::size_t>(store.value)].level > 0 &&
          store.placement == RowPlacement() && is_stream(program, store.buffer))
        lines(store.buffer, count, [&](std::int64_t offset) { builder.prefetch_store(store, column, offset); });
  const auto place = std::find(fetching.begin(), fetching.end(), level);
  if (place == fetching.end()) return;
  const auto parts = static_cast<std::int64_t>(fetching.size()), part = place - fetching.begin();
  for (const int buffer : streams_of_first_level(program))
    lines(buffer, count / parts, [&](std::int64_t offset) {
      builder.prefetch_next(buffer, column, parts, part * program.columns / parts + offset);
    });
}

}  // namespace weft
