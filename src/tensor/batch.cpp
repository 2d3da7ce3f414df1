#include "tensor/batch.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace weft {

Tensor make_batch(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> lengths,
                  std::span<const std::int32_t> block_table) {
  const std::size_t sequences = lengths.size();
  USER_CHECK(query_starts.size() == sequences + 1 && query_starts[0] == 0,
             "[batch] {} sequences need {} query starts from 0, but got {}", sequences, sequences + 1,
             query_starts.size());
  USER_CHECK(sequences == 0 ? block_table.empty() : block_table.size() % sequences == 0,
             "[batch] a block table of {} entries does not divide among {} sequences", block_table.size(), sequences);
  for (std::size_t i = 0; i < sequences; ++i) {
    const std::int64_t rows = std::int64_t{query_starts[i + 1]} - query_starts[i];
    USER_CHECK(rows >= 0 && lengths[i] >= rows, "[batch] sequence {} has {} rows of this step, but {} tokens in all", i,
               rows, lengths[i]);
  }
  const Batch batch{.sequences = static_cast<std::int32_t>(sequences),
                    .query_starts = query_starts.data(),
                    .lengths = lengths.data(),
                    .block_table = block_table.data(),
                    .max_blocks = sequences == 0 ? 0 : static_cast<std::int32_t>(block_table.size() / sequences)};
  Tensor tensor;
  tensor.meta = Meta::batch();
  tensor.storage = Storage::allocate(bytes_of_batch(batch.sequences, batch.max_blocks));
  copy_batch(batch, tensor.data());
  return tensor;
}

Tensor make_batch(const std::vector<std::pair<int, int>>& rows_and_length, int block) {
  std::vector<std::int32_t> starts{0}, lengths, table;
  int max_blocks = 0;
  for (const auto& [rows, length] : rows_and_length) {
    starts.push_back(starts.back() + rows);
    lengths.push_back(length);
    max_blocks = std::max(max_blocks, (length + block - 1) / block);
  }
  const int count = static_cast<int>(rows_and_length.size()) * max_blocks;
  for (int page = 0; page < count; ++page) table.push_back(page);
  return make_batch(starts, lengths, table);
}

std::int64_t bytes_of_batch(std::int64_t sequences, std::int64_t max_blocks) {
  const std::int64_t entries = (sequences + 1) + sequences + sequences * max_blocks;
  return static_cast<std::int64_t>(sizeof(Batch) + static_cast<std::size_t>(entries) * sizeof(std::int32_t));
}

void copy_batch(const Batch& from, std::byte* to) {
  Batch& batch = *new (to) Batch(from);
  auto* arrays = reinterpret_cast<std::int32_t*>(to + sizeof(Batch));
  const auto append = [&arrays](const std::int32_t* values, std::int64_t count) {
    const std::int32_t* const begin = arrays;
    arrays = std::copy_n(values, count, arrays);
    return begin;
  };
  batch.query_starts = append(from.query_starts, from.sequences + 1);
  batch.lengths = append(from.lengths, from.sequences);
  batch.block_table = append(from.block_table, std::int64_t{from.sequences} * from.max_blocks);
}

void check_batch(const Batch& batch, std::int64_t rows, std::int64_t block, std::int64_t pages) {
  CHECK(batch.query_starts[0] == 0 && batch.query_starts[batch.sequences] == rows,
        "[attention] the batch holds {} query rows, but query has {}", batch.query_starts[batch.sequences], rows);
  for (std::int32_t i = 0; i < batch.sequences; ++i) {
    const std::int64_t count = batch.query_starts[i + 1] - batch.query_starts[i];
    if (count == 0) continue;
    const std::int64_t blocks = (batch.lengths[i] + block - 1) / block;
    CHECK(count > 0 && batch.lengths[i] >= count && blocks <= batch.max_blocks,
          "[attention] sequence {} has {} query rows, {} tokens and room for {} blocks of {}", i, count,
          batch.lengths[i], batch.max_blocks, block);
    const std::int32_t* table = batch.block_table + static_cast<std::int64_t>(i) * batch.max_blocks;
    for (std::int64_t b = 0; b < blocks; ++b) {
      CHECK(table[b] >= 0 && table[b] < pages, "[attention] page {} of sequence {} is {}, but there are {}", b, i,
            table[b], pages);
    }
  }
}

std::set<std::int32_t> pages_of(const Batch& batch) {
  return {batch.block_table, batch.block_table + std::int64_t{batch.sequences} * batch.max_blocks};
}

}  // namespace weft
