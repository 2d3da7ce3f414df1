#pragma once

// What tests of attention need: sequences, the pages that they are stored in, steps of several sequences, and the same
// in double precision.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/batch.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/float8.h"
#include "tests/kernels/cpu_rows_support.h"

namespace weft::cpu_attention_test {

struct Heads {
  std::int64_t query = 9;
  std::int64_t kv = 3;
  std::int64_t dim = 64;
};

// One sequence: query, key and value of every token, as a model computes them.
struct Sequence {
  Sequence(const Heads& heads, std::int64_t length, DType dtype, std::uint32_t seed)
      : heads(heads), length(length), dtype(dtype) {
    query = rounded_values(length * heads.query * heads.dim, seed);
    key = rounded_values(length * heads.kv * heads.dim, seed + 1);
    value = rounded_values(length * heads.kv * heads.dim, seed + 2);
  }
  std::vector<float> rounded_values(std::int64_t count, std::uint32_t seed) const {
    std::vector<float> values = normal_values(static_cast<std::size_t>(count), seed);
    for (float& one : values) one = rounded(dtype, one);
    return values;
  }
  // [count, width] of tokens [first, first + count).
  Tensor rows(const std::vector<float>& from, std::int64_t head_count, std::int64_t first, std::int64_t count) const {
    const std::int64_t width = head_count * heads.dim;
    return tensor_of(dtype, {count, head_count, heads.dim},
                     {from.begin() + first * width, from.begin() + (first + count) * width});
  }

  Heads heads;
  std::int64_t length;
  DType dtype;
  std::vector<float> query, key, value;
};

// One layer's pages; each sequence has random ones.
class Cache {
 public:
  Cache(const Heads& heads, DType dtype, std::int64_t block, std::int64_t pages)
      : tensor_(Tensor::empty(Meta::pages({.dtype = dtype, .block = block, .heads = heads.kv, .head_dim = heads.dim}),
                              pages)),
        free_(static_cast<std::size_t>(pages)) {
    std::iota(free_.begin(), free_.end(), 0);
    std::shuffle(free_.begin(), free_.end(), std::mt19937(static_cast<std::uint32_t>(block)));
  }

  std::vector<std::int32_t> take_pages(std::int64_t count) {
    const std::vector<std::int32_t> taken(free_.end() - count, free_.end());
    free_.resize(free_.size() - taken.size());
    return taken;
  }
  // Everything in the pages becomes NaN.
  void spoil() {
    const std::int64_t elements = tensor_.view().size[0] * kv_page_elements(layout());
    const Tensor spoilt = tensor_of(layout().dtype, {elements}, std::vector<float>(elements, NAN));
    tensor_.storage = spoilt.storage;
  }
  const KvLayout& layout() const { return tensor_.meta.kv; }
  Tensor& tensor() { return tensor_; }

 private:
  Tensor tensor_;
  std::vector<std::int32_t> free_;
};

// Biases of scores by head and distance: [heads.query, columns].
inline Tensor random_bias(const Heads& heads, std::int64_t columns) {
  return tensor_of(DType::f32, {heads.query, columns},
                   normal_values(static_cast<std::size_t>(heads.query * columns), 17));
}

// Sequences that share steps; every token sees at most `window` tokens.
class Session {
 public:
  Session(RowKernels& kernels, Cache& cache, std::vector<const Sequence*> sequences, const Attribute& window = {},
          const std::optional<Tensor>& bias = std::nullopt)
      : kernels_(kernels),
        cache_(cache),
        sequences_(std::move(sequences)),
        window_(window),
        bias_(bias),
        done_(sequences_.size(), 0) {
    const std::int64_t block = cache.layout().block;
    for (const Sequence* sequence : sequences_)
      tables_.push_back(cache.take_pages((sequence->length + block - 1) / block));
    outputs_.resize(sequences_.size());
  }

  // Runs the next counts[i] tokens of each sequence.
  void step(const std::vector<std::int64_t>& counts) {
    std::vector<std::int32_t> starts{0}, lengths, table;
    std::vector<std::int64_t> slots;
    std::vector<float> query, key, value;
    std::size_t max_blocks = 0;
    for (const auto& pages : tables_) max_blocks = std::max(max_blocks, pages.size());
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      const Sequence& sequence = *sequences_[i];
      starts.push_back(starts.back() + static_cast<std::int32_t>(counts[i]));
      for (std::int64_t t = done_[i]; t < done_[i] + counts[i]; ++t) slots.push_back(slot_of(i, t));
      append(query, sequence, sequence.query, sequence.heads.query, i, counts[i]);
      append(key, sequence, sequence.key, sequence.heads.kv, i, counts[i]);
      append(value, sequence, sequence.value, sequence.heads.kv, i, counts[i]);
      lengths.push_back(static_cast<std::int32_t>(done_[i] + counts[i]));
      table.insert(table.end(), tables_[i].begin(), tables_[i].end());
      table.resize((i + 1) * max_blocks, -1);
    }
    const Heads& heads = sequences_[0]->heads;
    const DType dtype = sequences_[0]->dtype;
    const std::int64_t tokens = starts.back();
    // Query, key and value are next to each other, as one linear computes them.
    const auto view = [&](const std::vector<float>& values, std::int64_t count) {
      return with_row_gaps(tensor_of(dtype, {tokens, count, heads.dim}, values));
    };
    cache_.tensor() = kernels_.call("kv_cache_update",
                                    {view(key, heads.kv), view(value, heads.kv), cache_.tensor(), indices_of(slots)},
                                    {}, {cache_.tensor().meta})[0];
    const Meta result = Meta::tensor(dtype, {tokens, heads.query, heads.dim});
    operands_ = {view(query, heads.query), cache_.tensor(), make_batch(starts, lengths, table), std::nullopt, bias_};
    attended_ =
        kernels_.call("attention", operands_,
                      {{"scale", scale()}, {"window", window_}, {"softcap", 0.0}, {"causal", true}}, {result})[0];
    const std::vector<float> output = values_of(attended_);
    const std::int64_t width = heads.query * heads.dim;
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      outputs_[i].insert(outputs_[i].end(), output.begin() + starts[i] * width, output.begin() + starts[i + 1] * width);
      done_[i] += counts[i];
    }
  }

  // The attention of the last step, quantized by attention's kernel and by a separate op after it.
  void expect_same_codes(const OpTable& ops, const std::string& tail, const Tensor& given,
                         const NamedAttributes& attributes) {
    Tensor rows = attended_;
    rows.meta = Meta::tensor(rows.meta.dtype, {rows.meta.shape[0], rows.meta.shape[1] * rows.meta.shape[2]});
    const Op& op = ops.at(tail);
    const Attributes alone = complete_attributes(op.schema, attributes);
    const std::vector<Meta> results = infer_results(op, ops, {{rows.meta, given.meta}}, alone);
    NamedAttributes both = attributes;
    both.emplace_back("scale", scale());
    both.emplace_back("window", window_);
    const std::string fused = "attention_" + tail;
    std::vector<std::optional<Tensor>> operands = operands_;
    operands.resize(3);
    operands.emplace_back(given);
    const std::vector<Tensor> wanted = kernels_.call(tail, {rows, given}, alone, results);
    const std::vector<Tensor> came =
        kernels_.call(fused, operands, complete_attributes(ops.at(fused).schema, both), results);
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(std::memcmp(wanted[i].data(), came[i].data(), static_cast<std::size_t>(results[i].bytes().number())), 0)
          << fused << ", result " << i;
  }

  double scale() const { return 1 / std::sqrt(static_cast<double>(sequences_[0]->heads.dim)); }
  const std::vector<float>& output(std::size_t index) const { return outputs_[index]; }

 private:
  std::int64_t slot_of(std::size_t index, std::int64_t token) const {
    const std::int64_t block = cache_.layout().block;
    return tables_[index][static_cast<std::size_t>(token / block)] * block + token % block;
  }
  void append(std::vector<float>& to, const Sequence& sequence, const std::vector<float>& from, std::int64_t heads,
              std::size_t index, std::int64_t count) const {
    const std::int64_t width = heads * sequence.heads.dim;
    to.insert(to.end(), from.begin() + done_[index] * width, from.begin() + (done_[index] + count) * width);
  }
  // Tokens one head further apart than they need be.
  static Tensor with_row_gaps(const Tensor& tensor) {
    const std::int64_t heads = tensor.meta.shape[1].number(), dim = tensor.meta.shape[2].number();
    Tensor rows = tensor;
    rows.meta = Meta::tensor(tensor.meta.dtype, {tensor.meta.shape[0], heads * dim});
    rows = with_row_padding(rows, dim);
    rows.meta = Meta::strided(tensor.meta.dtype, tensor.meta.shape, {(heads + 1) * dim, dim, 1});
    return rows;
  }

  RowKernels& kernels_;
  Cache& cache_;
  std::vector<const Sequence*> sequences_;
  Attribute window_;
  std::optional<Tensor> bias_;
  std::vector<std::int64_t> done_;
  std::vector<std::vector<std::int32_t>> tables_;
  std::vector<std::vector<float>> outputs_;
  std::vector<std::optional<Tensor>> operands_;
  Tensor attended_;
};

inline std::vector<float> whole_output(RowKernels& kernels, const Sequence& sequence, DType pages, std::int64_t block,
                                       const Attribute& window = {}, const std::optional<Tensor>& bias = std::nullopt) {
  Cache cache(sequence.heads, pages, block, 2 * (sequence.length / block + 1));
  Session session(kernels, cache, {&sequence}, window, bias);
  session.step({sequence.length});
  return session.output(0);
}

inline std::vector<float> as_stored(std::vector<float> values, DType pages) {
  if (is_block(pages)) {
    std::vector<std::byte> blocks(static_cast<std::size_t>(bytes_of(pages, static_cast<std::int64_t>(values.size()))));
    quantize_row(pages, values.data(), blocks.data(), static_cast<std::int64_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = load_float(pages, blocks.data(), static_cast<std::int64_t>(i));
    return values;
  }
  for (float& value : values)
    value = pages == DType::f8e4m3 ? f8e4m3_to_f32(f32_to_f8e4m3(value)) : rounded(pages, value);
  return values;
}

// In double, from the values in the cache.
inline std::vector<float> exact_output(const Sequence& sequence, DType pages, double scale,
                                       std::int64_t window = 1 << 20, const Tensor* bias = nullptr) {
  const Heads& heads = sequence.heads;
  const std::vector<float> keys = as_stored(sequence.key, pages), values = as_stored(sequence.value, pages);
  std::vector<float> output;
  for (std::int64_t token = 0; token < sequence.length; ++token) {
    const std::int64_t first = std::max<std::int64_t>(0, token - window + 1);
    for (std::int64_t head = 0; head < heads.query; ++head) {
      const std::int64_t kv_head = head * heads.kv / heads.query;
      const float* query = &sequence.query[(token * heads.query + head) * heads.dim];
      std::vector<double> weights, sums(static_cast<std::size_t>(heads.dim));
      for (std::int64_t t = first; t <= token; ++t) {
        const float* key = &keys[(t * heads.kv + kv_head) * heads.dim];
        double score = 0;
        for (std::int64_t d = 0; d < heads.dim; ++d) score += double{query[d]} * key[d];
        weights.push_back(score * scale);
        if (bias == nullptr) continue;
        const std::int64_t columns = bias->meta.shape[1].number(), column = t - token + columns / 2;
        weights.back() += bias->as<float>()[head * columns + std::max<std::int64_t>(0, column)];
      }
      const double largest = *std::max_element(weights.begin(), weights.end());
      double total = 0;
      for (double& weight : weights) total += weight = std::exp(weight - largest);
      for (std::int64_t t = first; t <= token; ++t) {
        const float* value = &values[(t * heads.kv + kv_head) * heads.dim];
        for (std::int64_t d = 0; d < heads.dim; ++d) sums[d] += weights[t - first] / total * value[d];
      }
      output.insert(output.end(), sums.begin(), sums.end());
    }
  }
  return output;
}

}  // namespace weft::cpu_attention_test
