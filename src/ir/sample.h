#pragma once

// Samples: example arguments for an op. Generic tests, benchmarks and the oracle run each op and kernel on them.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/attribute.h"
#include "tensor/meta.h"
#include "tensor/tensor.h"

namespace weft {

enum class Fill : std::uint8_t {
  normal,    // about N(0, 1)
  positive,  // uniform in (0.1, 2)
  indices,   // integers in [0, limit)
  codes,     // int8 codes in [-127, 127]; scales for floating dtypes in (0.001, 0.1)
  zero,
};

// One tensor argument. Without a dtype it has the dtype under test: the sample runs once for each of f32, bf16, f16.
struct SampleTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::optional<DType> dtype;
  Fill fill = Fill::normal;
  std::int64_t limit = 0;  // Fill::indices: exclusive; 0 makes a permutation of all indices

  SampleTensor(std::string name, std::vector<std::int64_t> shape, std::optional<DType> dtype = std::nullopt,
               Fill fill = Fill::normal, std::int64_t limit = 0)
      : name(std::move(name)), shape(std::move(shape)), dtype(dtype), fill(fill), limit(limit) {}
  // KV pages of a layout, with random numbers.
  static SampleTensor pages(std::string name, KvLayout layout, std::int64_t count);
  // A batch: for each sequence, the number of rows in this step and of tokens in the cache, which includes these rows.
  static SampleTensor batch(std::string name, std::vector<std::pair<int, int>> rows_and_length, int block);

  KvLayout kv;
  MetaKind kind = MetaKind::tensor;
  std::vector<std::pair<int, int>> rows_and_length;
};

struct Sample {
  std::vector<SampleTensor> tensors;  // by name; an optional tensor that is not named is absent
  NamedAttributes attributes;

  // Whether any tensor takes the dtype under test.
  bool is_generic() const;
};

// The meta of the tensor that make_sample_tensor() makes.
Meta sample_meta(const SampleTensor& sample, DType dtype_under_test);
// The tensor that a SampleTensor describes. A seeded generator fills it, with the same values on every machine.
Tensor make_sample_tensor(const SampleTensor& sample, DType dtype_under_test, std::uint64_t seed);

}  // namespace weft
