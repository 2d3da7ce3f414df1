#include "compiler/tune/tune_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/sample.h"
#include "tensor/batch.h"
#include "tensor/convert.h"

namespace weft {
namespace {

bool is_index(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

// A number of rows that every table has: the limit for row indices.
std::int64_t index_limit(const std::vector<std::optional<Meta>>& operands) {
  std::int64_t limit = std::int64_t{1} << 20;
  for (const std::optional<Meta>& operand : operands)
    if (operand && operand->is_tensor() && operand->rank() >= 2) limit = std::min(limit, operand->shape[0].number());
  return std::max<std::int64_t>(1, limit);
}

// `count` elements, repeated after a few thousand; whole blocks if the dtype has blocks.
Tensor filled(DType dtype, std::int64_t count, std::int64_t limit) {
  constexpr std::int64_t kPeriod = 4096;
  Tensor tensor = Tensor::empty(Meta::tensor(dtype, {count}));
  if (is_index(dtype)) {
    for (std::int64_t i = 0; i < count; ++i) store_integer(dtype, tensor.data(), i, i % limit);
    return tensor;
  }
  const std::int64_t period = std::min(count, kPeriod);
  const Tensor some =
      make_sample_tensor(SampleTensor("x", {period}, dtype, is_block(dtype) ? Fill::normal : Fill::codes), dtype, 1);
  const std::int64_t all = tensor.meta.bytes().number(), part = bytes_of(dtype, period);
  for (std::int64_t at = 0; at < all; at += part)
    std::memcpy(tensor.data() + at, some.data(), static_cast<std::size_t>(std::min(part, all - at)));
  return tensor;
}

Tensor tensor_of(const Meta& meta, std::int64_t limit) {
  std::int64_t extent = element_count(meta.shape).number();
  if (!meta.is_contiguous()) {
    extent = 1;
    for (std::size_t i = 0; i < meta.rank(); ++i) extent += (meta.shape[i].number() - 1) * meta.strides[i].number();
  }
  Tensor tensor = filled(meta.dtype, extent, limit);
  tensor.meta = meta;
  return tensor;
}

}  // namespace

std::vector<Tensor> tune_inputs(const std::vector<std::optional<Meta>>& operands, std::int64_t rows) {
  const std::int64_t limit = index_limit(operands);
  std::int64_t block = 16;
  for (const std::optional<Meta>& operand : operands)
    if (operand && operand->kind == MetaKind::kv) block = operand->kv.block;
  const int tokens = static_cast<int>(std::max<std::int64_t>(1, rows));
  std::vector<Tensor> inputs;
  for (const std::optional<Meta>& operand : operands) {
    if (!operand) {
      inputs.emplace_back();
    } else if (operand->kind == MetaKind::batch) {
      inputs.push_back(make_batch({{tokens, tokens}}, static_cast<int>(block)));
    } else if (operand->kind == MetaKind::kv) {
      inputs.push_back(Tensor::empty(Meta::pages(operand->kv), tokens / block + 1));
    } else {
      CHECK(operand->is_tensor(), "{} is not an operand of a compiled call", operand->text());
      inputs.push_back(tensor_of(*operand, limit));
    }
  }
  return inputs;
}

}  // namespace weft
