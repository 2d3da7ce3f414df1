#pragma once

// Builds the value of a `batch` input: a Tensor of meta `batch` whose storage contains the Batch and its arrays.

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

// `query_starts` [sequences + 1], `lengths` [sequences], `block_table` [sequences, max_blocks]. The arrays are copied.
// UserError when their sizes disagree, starts do not ascend from 0, or a length is below its sequence's rows.
Tensor make_batch(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> lengths,
                  std::span<const std::int32_t> block_table);

// `rows_and_length` has for each sequence its query rows in this step, and its tokens in the cache with these rows.
// `block` is the tokens of a page; pages are numbered consecutively.
Tensor make_batch(const std::vector<std::pair<int, int>>& rows_and_length, int block);

// The bytes of a batch of this size, with its arrays stored after it.
std::int64_t bytes_of_batch(std::int64_t sequences, std::int64_t max_blocks);
// Copies the batch and its arrays to `to`, which must have bytes_of_batch bytes.
void copy_batch(const Batch& from, std::byte* to);

// Throws InternalError unless the batch has `rows` query rows and its block table has, for each sequence, enough pages
// of `block` tokens, all with numbers below `pages`.
void check_batch(const Batch& batch, std::int64_t rows, std::int64_t block, std::int64_t pages);

// The pages that its sequences use.
std::set<std::int32_t> pages_of(const Batch& batch);

inline const Batch& batch_of(const Tensor& tensor) { return *tensor.as<Batch>(); }

}  // namespace weft
