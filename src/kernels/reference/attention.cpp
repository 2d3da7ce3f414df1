// attention and kv_cache_update over paged caches, row by row.

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"
#include "kernels/attention_window.h"
#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/batch.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/kv_pages.h"
#include "tensor/reference_math.h"

namespace weft {
namespace {

// How scores of a query head at a position are made from its products with keys.
struct Scores {
  float scale = 1;
  float softcap = 0;
  std::optional<float> sink;
  TensorView bias;  // f32[heads, 2 reach - 1] or absent
  std::int64_t head = 0, position = 0;

  float of(float product, std::int64_t token) const {
    float score = product * scale;
    if (softcap != 0) score = softcap * reference_tanh(score / softcap);
    if (!bias.present()) return score;
    const std::int64_t farthest = bias.size[1] / 2;
    const std::int64_t column = std::clamp(token - position, -farthest, farthest) + farthest;
    return score + bias.as<float>()[head * bias.stride[0] + column * bias.stride[1]];
  }
};

// One query head against the tokens [first, end) of a sequence whose pages are `table`.
std::vector<float> attend(const std::vector<float>& query, const TensorView& pages, const std::int32_t* table,
                          std::int64_t head, std::int64_t first, std::int64_t end, const Scores& scores) {
  const KvLayout& kv = pages.meta->kv;
  std::vector<float> weights(static_cast<std::size_t>(end - first));
  float largest = -INFINITY, sum = 0;
  for (std::int64_t t = first; t < end; ++t) {
    const std::int64_t key = kv_key_offset(kv, table[t / kv.block], head);
    float score = 0;
    for (std::int64_t i = 0; i < kv.head_dim; ++i)
      score += query[static_cast<std::size_t>(i)] *
               load_float(kv.dtype, pages.data, key + kv_key_element(kv, t % kv.block, i));
    score = scores.of(score, t);
    weights[static_cast<std::size_t>(t - first)] = score;
    largest = std::fmax(largest, score);
  }
  if (scores.sink) {
    largest = std::fmax(largest, *scores.sink);
    sum = reference_exp(*scores.sink - largest);
  }
  for (float& weight : weights) sum += weight = reference_exp(weight - largest);
  std::vector<float> output(static_cast<std::size_t>(kv.head_dim));
  for (std::int64_t t = first; t < end; ++t) {
    const std::int64_t value = kv_value_offset(kv, table[t / kv.block], head);
    for (std::int64_t i = 0; i < kv.head_dim; ++i)
      output[static_cast<std::size_t>(i)] +=
          weights[static_cast<std::size_t>(t - first)] *
          load_float(kv.dtype, pages.data, value + kv_value_element(kv, t % kv.block, i));
  }
  for (float& element : output) element /= sum;
  return output;
}

void attention(const KernelCall& call) {
  const TensorView& query = call.operands[0];
  const TensorView& pages = call.operands[1];
  const Batch& batch = *call.operands[2].as<Batch>();
  const TensorView& y = call.results[0];
  check_batch(batch, query.size[0], pages.meta->kv.block, pages.size[0]);
  const TensorView& sinks = call.operands[3];
  Scores scores{.scale = static_cast<float>(call.attributes.at("scale").real()),
                .softcap = static_cast<float>(call.attributes.at("softcap").real()),
                .bias = call.operands[4]};
  const std::int64_t window = attention_window(call.attributes), ahead = attention_ahead(call.attributes);
  const std::int64_t heads = query.size[1], width = query.size[2], shared = heads / pages.meta->kv.heads;
  for (std::int32_t sequence = 0; sequence < batch.sequences; ++sequence) {
    const std::int32_t begin = batch.query_starts[sequence], end = batch.query_starts[sequence + 1];
    const std::int32_t* table = batch.block_table + std::int64_t{sequence} * batch.max_blocks;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t all = batch.lengths[sequence], length = all - (end - 1 - row);
      const std::int64_t first = first_in_window(length, window), last = end_of_attention(length, ahead, all);
      for (std::int64_t head = 0; head < heads; ++head) {
        std::vector<float> q;
        for (std::int64_t i = 0; i < width; ++i)
          q.push_back(load_float(query.dtype, query.data,
                                 row * query.stride[0] + head * query.stride[1] + i * query.stride[2]));
        scores.head = head;
        scores.position = length - 1;
        if (sinks.present()) scores.sink = load_float(sinks.dtype, sinks.data, head * sinks.stride[0]);
        const std::vector<float> output = attend(q, pages, table, head / shared, first, last, scores);
        for (std::int64_t i = 0; i < width; ++i)
          store_float(y.dtype, y.data, row * y.stride[0] + head * y.stride[1] + i, output[static_cast<std::size_t>(i)]);
      }
    }
  }
}

// `at` gives the place of each element. A block with a value that is not finite gets NaN throughout.
template <class At>
void store_in_page(const TensorView& pages, std::vector<float> elements, const At& at) {
  const DType dtype = pages.meta->kv.dtype;
  if (!is_block(dtype)) {
    for (std::size_t i = 0; i < elements.size(); ++i)
      store_float(dtype, pages.data, at(static_cast<std::int64_t>(i)), elements[i]);
    return;
  }
  const auto size = static_cast<std::size_t>(dtype_info(dtype).block_elements);
  for (std::size_t begin = 0; begin < elements.size(); begin += size) {
    std::byte* block = pages.data + bytes_of(dtype, at(static_cast<std::int64_t>(begin)));
    const auto first = elements.begin() + static_cast<std::ptrdiff_t>(begin);
    const bool is_finite =
        std::all_of(first, first + static_cast<std::ptrdiff_t>(size), [](float x) { return std::isfinite(x); });
    if (!is_finite) std::fill_n(first, size, 0.0F);
    quantize_row(dtype, &*first, block, static_cast<std::int64_t>(size));
    if (!is_finite) store_float(DType::f16, block, 0, NAN);  // q8_0 begins with its scale
  }
}

void kv_cache_update(const KernelCall& call) {
  const TensorView& slots = call.operands[3];
  const TensorView& pages = call.results[0];
  const KvLayout& kv = pages.meta->kv;
  for (std::int64_t row = 0; row < slots.size[0]; ++row) {
    const std::int64_t slot = slots.as<std::int64_t>()[row * slots.stride[0]];
    if (slot < 0) continue;
    const std::int64_t page = slot / kv.block, place = slot % kv.block;
    USER_CHECK(page < pages.size[0], "[kv_cache_update] slot {} is beyond the {} pages", slot, pages.size[0]);
    for (std::int64_t head = 0; head < kv.heads; ++head) {
      const auto row_of = [&](const TensorView& x) {
        std::vector<float> elements;
        for (std::int64_t i = 0; i < kv.head_dim; ++i)
          elements.push_back(load_float(x.dtype, x.data, row * x.stride[0] + head * x.stride[1] + i * x.stride[2]));
        return elements;
      };
      const std::int64_t key = kv_key_offset(kv, page, head);
      store_in_page(pages, row_of(call.operands[0]),
                    [&](std::int64_t i) { return key + kv_key_element(kv, place, i); });
      if (kv.keys_are_values) continue;
      const std::int64_t value = kv_value_offset(kv, page, head);
      store_in_page(pages, row_of(call.operands[1]),
                    [&](std::int64_t i) { return value + kv_value_element(kv, place, i); });
    }
  }
}

}  // namespace
}  // namespace weft

KERNELS(reference, attention) {
  registry.add({.op = "attention", .provider = "reference", .run = attention});
  registry.add({.op = "kv_cache_update", .provider = "reference", .writes = {2}, .run = kv_cache_update});
}
