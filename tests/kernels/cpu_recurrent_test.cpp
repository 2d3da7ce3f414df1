// The kernels of recurrent layers: results do not depend on how a sequence was split into steps, on its neighbours, or
// on the size of pages, and rows without pages touch none.

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "tensor/batch.h"
#include "tests/kernels/cpu_rows_support.h"

namespace weft::cpu_recurrent_test {

constexpr std::int64_t kTokens = 45, kKeyHeads = 2, kHeads = 4, kKeyDim = 12, kValueDim = 21, kChannels = 300,
                       kTaps = 4;

constexpr const char* kOps[] = {"causal_conv1d", "linear_attention", "selective_scan"};

// The operands of one of the ops for some rows of a sequence: the name of the op, and values for all tokens.
struct Layer {
  std::string op;
  DType dtype;
  std::vector<float> x, query, key, value, log_decay, beta, weight, step, decay;

  Layer(std::string name, DType dtype) : op(std::move(name)), dtype(dtype) {
    x = normal_values(kTokens * kChannels, 1);
    query = normal_values(kTokens * kKeyHeads * kKeyDim, 2);
    key = normal_values(kTokens * kKeyHeads * kKeyDim, 3);
    for (float& one : key) one *= 0.2F;
    value = normal_values(kTokens * kHeads * kValueDim, 4);
    log_decay = normal_values(kTokens * kHeads, 5);
    for (float& one : log_decay) one = -std::abs(one) / 4;
    beta = normal_values(kTokens * kHeads, 6);
    for (float& one : beta) one = 1 / (1 + std::exp(-one));
    weight = normal_values(kTaps * kChannels, 7);
    step = normal_values(kTokens * kChannels, 8);
    decay = normal_values(kKeyDim * kChannels, 9);
    for (float& one : step) one = std::abs(one) / 2;
    for (float& one : decay) one = -std::abs(one);
  }

  bool is_convolution() const { return op == "causal_conv1d"; }
  bool is_scan() const { return op == "selective_scan"; }
  KvLayout layout(std::int64_t block) const {
    if (is_convolution()) return {DType::f32, block, 1, kChannels, false, kTaps - 1};
    if (is_scan()) return {DType::f32, block, 1, kChannels, false, kKeyDim};
    return {DType::f32, block, kHeads, kValueDim, false, kKeyDim};
  }
  std::int64_t width() const { return is_convolution() || is_scan() ? kChannels : kHeads * kValueDim; }

  Tensor rows(DType type, const std::vector<float>& from, Shape row, std::int64_t first, std::int64_t count) const {
    const std::int64_t elements = element_count(row).number();
    row.insert(row.begin(), Dim(count));
    return tensor_of(type, row, {from.begin() + first * elements, from.begin() + (first + count) * elements});
  }

  // Rows [first, first + count) of the sequence, whose pages are `table`, and `padding` rows without pages.
  std::vector<float> run(RowKernels& kernels, Tensor& pages, const std::vector<std::int32_t>& table, std::int64_t first,
                         std::int64_t count, std::int64_t padding = 0) const {
    std::vector<std::int32_t> starts{0, static_cast<std::int32_t>(count)},
        lengths{static_cast<std::int32_t>(first + count)}, tables = table;
    if (padding > 0) {
      starts.push_back(static_cast<std::int32_t>(count + padding));
      lengths.push_back(static_cast<std::int32_t>(padding));
      tables.resize(2 * table.size());  // zeros
    }
    std::vector<std::int64_t> slots(static_cast<std::size_t>(count), 5);
    slots.resize(static_cast<std::size_t>(count + padding), -1);
    const std::int64_t all = count + padding;  // the padding has the values of the tokens after the rows
    const Tensor batch = make_batch(starts, lengths, tables), slot = indices_of(slots);
    std::vector<std::optional<Tensor>> operands;
    Attributes attributes;
    Shape shape{Dim(all), Dim(kChannels)};
    if (is_convolution()) {
      operands = {rows(dtype, x, {kChannels}, first, all),
                  tensor_of(DType::f32, {kTaps, kChannels}, weight),
                  std::nullopt,
                  pages,
                  batch,
                  slot};
    } else if (is_scan()) {
      operands = {rows(dtype, x, {kChannels}, first, all),
                  rows(DType::f32, step, {kChannels}, first, all),
                  tensor_of(DType::f32, {kKeyDim, kChannels}, decay),
                  rows(dtype, key, {kKeyDim}, first, all),
                  rows(dtype, query, {kKeyDim}, first, all),
                  pages,
                  batch,
                  slot};
    } else {
      operands = {rows(dtype, query, {kKeyHeads, kKeyDim}, first, all),
                  rows(dtype, key, {kKeyHeads, kKeyDim}, first, all),
                  rows(dtype, value, {kHeads, kValueDim}, first, all),
                  rows(DType::f32, log_decay, {kHeads}, first, all),
                  rows(DType::f32, beta, {kHeads}, first, all),
                  pages,
                  batch,
                  slot};
      attributes = {{"scale", 0.25}, {"delta", true}};
      shape = {Dim(all), Dim(kHeads), Dim(kValueDim)};
    }
    const std::vector<Tensor> results =
        kernels.call(op, operands, attributes, {Meta::tensor(dtype, shape), pages.meta});
    pages = results[1];
    return values_of(results[0]);
  }
};

std::vector<float> whole(RowKernels& kernels, const Layer& layer) {
  Tensor pages = Tensor::empty(Meta::pages(layer.layout(64)), 3);
  return layer.run(kernels, pages, {1}, 0, kTokens);
}

TEST(CpuRecurrent, HasTheSameBitsHoweverASequenceIsSplit) {
  for_each_machine([&](RowKernels& kernels) {
    for (const char* op : kOps)
      for (const DType dtype : kFloatTypes) {
        const Layer layer(op, dtype);
        const std::vector<float> wanted = whole(kernels, layer);
        for (const std::int64_t block : {1, 7, 16}) {
          if (block != 7 && dtype != DType::f32) continue;
          Tensor pages = Tensor::empty(Meta::pages(layer.layout(block)), kTokens + 2);
          std::memset(pages.data(), 0x7f, static_cast<std::size_t>(pages.storage->bytes()));  // what others left
          std::vector<std::int32_t> table;
          for (std::int64_t i = 0; i < (kTokens + block - 1) / block; ++i)
            table.push_back(static_cast<std::int32_t>(kTokens - i));
          std::vector<float> came;
          std::int64_t at = 0;
          for (const std::int64_t rows : {1, 9, 1, 9, 1, 9, 4, 1, 9, 1}) {
            const std::vector<float> part = layer.run(kernels, pages, table, at, rows);
            came.insert(came.end(), part.begin(), part.end());
            at += rows;
          }
          EXPECT_EQ(at, kTokens);
          expect_same_bits(wanted, came, fmt::format("{} of {}, block {}", op, dtype_text(dtype), block));
        }
      }
  });
}

// A sequence that shares the page of a full block goes on from the state that is there, and leaves it as it was.
TEST(CpuRecurrent, GoesOnFromTheStateOfAFullBlock) {
  for_each_machine([&](RowKernels& kernels) {
    for (const char* op : kOps) {
      const Layer layer(op, DType::f32);
      const std::vector<float> wanted = whole(kernels, layer);
      Tensor pages = Tensor::empty(Meta::pages(layer.layout(16)), 6);
      layer.run(kernels, pages, {1, 2, 3}, 0, kTokens);
      const std::vector<std::byte> before(pages.data(), pages.data() + pages.storage->bytes());
      const std::vector<float> came = layer.run(kernels, pages, {1, 4, 5}, 16, kTokens - 16);
      expect_same_bits({wanted.begin() + 16 * layer.width(), wanted.end()}, came, op);
      const std::int64_t bytes = pages.storage->bytes() / 6;
      EXPECT_EQ(std::memcmp(pages.data(), before.data(), static_cast<std::size_t>(4 * bytes)), 0);
    }
  });
}

TEST(CpuRecurrent, LeavesPagesAloneForRowsWithoutThem) {
  for_each_machine([&](RowKernels& kernels) {
    for (const char* op : kOps) {
      const Layer layer(op, DType::bf16);
      const std::vector<float> wanted = whole(kernels, layer);
      Tensor pages = Tensor::empty(Meta::pages(layer.layout(16)), 3);
      std::memset(pages.data(), 0x3f, static_cast<std::size_t>(pages.storage->bytes() / 3));
      const std::vector<std::byte> before(pages.data(), pages.data() + pages.storage->bytes() / 3);
      const std::vector<float> came = layer.run(kernels, pages, {1, 2}, 0, 20, 9);
      expect_same_bits({wanted.begin(), wanted.begin() + 20 * layer.width()},
                       {came.begin(), came.begin() + 20 * layer.width()}, op);
      for (std::size_t i = static_cast<std::size_t>(20 * layer.width()); i < came.size(); ++i) EXPECT_EQ(came[i], 0.0F);
      EXPECT_EQ(std::memcmp(pages.data(), before.data(), before.size()), 0) << "the first page";
    }
  });
}

}  // namespace weft::cpu_recurrent_test
