#pragma once

// The prefetches in a row program's loops over columns, through the Builder of emit.h.

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

// The cost of one element in each level's loop over the columns (tensor/arithmetic_cost.h). The program is finished.
inline std::vector<int> costs_of_levels(const RowProgram& program) {
  std::vector<int> costs(static_cast<std::size_t>(program.levels), 0);
  for (const RowValue& value : program.values)
    if (value.domain == RowDomain::element)
      costs[static_cast<std::size_t>(value.level)] +=
          is_of_small_floats(value) ? kSmallFloatConversionCost : row_op_cost(value.op);
  return costs;
}

inline constexpr std::int64_t kCacheLine = 64;  // bytes

// The number of columns in a cache line; 0 if columns are farther apart than a line.
inline std::int64_t columns_of_line(const RowBuffer& buffer) {
  return kCacheLine / dtype_info(buffer.dtype).block_bytes * buffer.elements_of_unit() / buffer.placement.stride;
}

// Whether rows follow each other in memory, several columns share a line, no rows are gathered, and no columns of
// another buffer are between these.
inline bool is_stream(const RowProgram& program, int buffer) {
  const RowBuffer& at = program.buffers[static_cast<std::size_t>(buffer)];
  return at.row_stride > 0 && at.numbers < 0 && at.interleaved_with < 0 && columns_of_line(at) > 1;
}

// The buffers that the first level reads and writes as streams.
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

// Bits of one column in all of them, including the gaps between columns.
inline std::int64_t bits_of_first_level(const RowProgram& program) {
  std::int64_t bits = 0;
  for (const int buffer : streams_of_first_level(program))
    bits += 8 * kCacheLine / columns_of_line(program.buffers[static_cast<std::size_t>(buffer)]);
  return bits;
}

// Returns the levels that prefetch the data that the first level reads and writes in the next row. Each fetches an
// equal part. Only later levels prefetch, and only if together they cost more than the first: with three levels, both
// later ones, so that memory stays busy for longer; otherwise the later level that computes most. A core fetches far
// less by prefetch instructions than its hardware prefetcher does for lines in sequence (Zen 5: 15 GB/s and 38 GB/s).
// So prefetching pays only if the later levels take long compared with the amount of data.
inline std::vector<int> fetching_levels(const RowProgram& program) {
  constexpr double kLeastCostOfBit = 0.3;
  if (program.levels < 2) return {};
  const std::vector<int> costs = costs_of_levels(program);
  const int later = std::accumulate(costs.begin() + 1, costs.end(), 0);
  if (later < costs[0] || later < kLeastCostOfBit * static_cast<double>(bits_of_first_level(program))) return {};
  if (program.levels == 3) return {1, 2};
  return {static_cast<int>(costs.rend() - std::max_element(costs.rbegin(), costs.rend() - 1)) - 1};
}

// Whether the first level prefetches its own inputs. The reorder buffer holds a few hundred operations. If these cover
// few cache lines, a core that stalls on memory has few lines in flight (Sapphire Rapids: 17 GB/s with 25 operations
// for each line, 29 GB/s with prefetches). If there is little to compute, the reorder window covers enough lines, and
// for data in the cache the prefetch instructions would only cost.
inline bool fetches_ahead(const RowProgram& program) {
  constexpr double kLeastCostOfBit = 0.15;
  if (!fetching_levels(program).empty()) return false;
  const std::vector<int> costs = costs_of_levels(program);
  int all = std::accumulate(costs.begin(), costs.end(), 0);
  // Decoding and reducing, which costs_of_levels leaves out.
  for (const int buffer : streams_of_first_level(program))
    if (program.buffers[static_cast<std::size_t>(buffer)].dtype != DType::f32) all += kConversionCost / 2;
  for (const RowValue& value : program.values)
    if (is_reduction(value.op) && value.level == 1) all += value.op == RowOp::row_signed_max ? 3 : 1;
  return all >= kLeastCostOfBit * static_cast<double>(bits_of_first_level(program));
}

// Each level stalls on memory when it begins to read and to write, while other levels leave memory idle. So, with three
// or more levels, the first level prefetches what later levels write, and later levels prefetch what the first level
// uses in the next row. If no later level prefetches, the first level may prefetch for itself.
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
