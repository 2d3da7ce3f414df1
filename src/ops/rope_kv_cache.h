#pragma once

// Ops that rotate query and key and write the key and the value to the KV pages share these.

#include "ir/sample.h"
#include "ops/kv_cache_update.h"
#include "ops/reshape.h"

namespace weft {

// key [s0, kv_heads * head_size], value [s0, kv_heads, head_size].
inline Value pages_with(const Value& key, const Value& value, const Value& kv, const Value& slots,
                        std::int64_t head_size) {
  const Shape heads{key.dim(0), key.dim(1).number() / head_size, head_size};
  return kv_cache_update(reshape(key, heads), value, kv, slots);
}

// Samples for each kind of pages; the rotation covers the whole head or half of it.
struct RopeUpdateSample {
  KvLayout pages;
  std::int64_t rotary_dim;
};

inline std::vector<RopeUpdateSample> rope_update_samples() {
  std::vector<RopeUpdateSample> samples;
  for (const DType dtype : {DType::f32, DType::f16})
    for (const int block : {1, 16})
      samples.push_back({{.dtype = dtype, .block = block, .heads = 2, .head_dim = 16},
                         (dtype == DType::f32) == (block == 1) ? 8 : 16});
  return samples;
}

// The sample has five tokens and four query heads.
inline std::vector<SampleTensor> tensors_of(const RopeUpdateSample& sample) {
  return {{"positions", {5}, DType::i64, Fill::indices, 20},
          {"query", {5, 64}},
          {"key", {5, 32}},
          {"value", {5, 2, 16}},
          {"cos_sin_cache", {20, sample.rotary_dim}, DType::f32},
          SampleTensor::pages("kv", sample.pages, 64 / sample.pages.block),
          {"slots", {5}, DType::i64, Fill::indices}};
}

}  // namespace weft
