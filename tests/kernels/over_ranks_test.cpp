// Ops over ranks compared with plain loops over the ranks' operands; the ranks are threads here.

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/interpret.h"
#include "ops/all_gather.h"
#include "ops/all_reduce.h"
#include "ops/rank_slice.h"
#include "ops/reduce_scatter.h"
#include "tensor/convert.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::over_ranks_test {

const Context& context() {
  static const std::shared_ptr<Context> shared = test_context("host", 1);
  return *shared;
}

// The result of each rank, for the operands of all ranks.
std::vector<Tensor> run_on(const std::vector<Tensor>& owned, const std::function<Value(const Value&)>& op) {
  const std::vector<std::string> names = {"tp"};
  std::vector<Tensor> results(owned.size());
  run_ranks(static_cast<int>(owned.size()), names, [&](int rank, const RankGroups& groups) {
    ThreadPool threads(1);
    Interpreter interpreter(context(), threads, groups);
    const auto at = static_cast<std::size_t>(rank);
    results[at] = op(interpreter.value(owned[at])).tensor();
  });
  return results;
}

std::vector<Tensor> random_tensors(int ranks, const std::vector<std::int64_t>& shape, DType dtype) {
  std::vector<Tensor> tensors;
  for (int rank = 0; rank < ranks; ++rank)
    tensors.push_back(make_sample_tensor({"x", shape, dtype}, dtype, static_cast<std::uint64_t>(rank) + 7));
  return tensors;
}

// The sum as it is promised: in f32, in the order of the ranks, rounded once.
Tensor sum_of(const std::vector<Tensor>& tensors) {
  Tensor sum = Tensor::empty(tensors[0].meta);
  for (std::int64_t i = 0; i < element_count(sum.meta.shape).number(); ++i) {
    float total = load_float(sum.meta.dtype, tensors[0].data(), i);
    for (std::size_t rank = 1; rank < tensors.size(); ++rank)
      total += load_float(sum.meta.dtype, tensors[rank].data(), i);
    store_float(sum.meta.dtype, sum.data(), i, total);
  }
  return sum;
}

// Part `index` of `count` along the dim.
Tensor part_of(const Tensor& tensor, int dim, std::int64_t index, std::int64_t count) {
  const auto axis = static_cast<std::size_t>(dim);
  const Shape strides = tensor.meta.full_strides();
  Tensor part = tensor;
  const Dim length = floordiv(tensor.meta.shape[axis], count);
  part.byte_offset += (length * strides[axis]).number() * index * bytes_of(tensor.meta.dtype, 1);
  part.meta = tensor.meta;
  part.meta.shape[axis] = length;
  part.meta = Meta::strided(part.meta.dtype, part.meta.shape, strides);
  return contiguous(part);
}

TEST(OverRanks, ThreadsReduceToTheSameBitsEverywhere) {
  for (const int ranks : {2, 3, 4})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const auto& shape : std::vector<std::vector<std::int64_t>>{{8, 12}, {1, 7}, {2, 3, 5}}) {
        const std::vector<Tensor> owned = random_tensors(ranks, shape, dtype);
        const Tensor wanted = sum_of(owned);
        for (const Tensor& came : run_on(owned, [&](const Value& x) { return all_reduce(x, ranks, "tp"); }))
          EXPECT_EQ(difference(wanted, came, {}, true), "") << ranks << " ranks, " << wanted.meta.text();
      }
}

TEST(OverRanks, ThreadsScatterGatherAndSliceAlongAnyDim) {
  for (const int ranks : {2, 4})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int dim : {0, 1, 2}) {
        const std::vector<Tensor> owned = random_tensors(ranks, {4, 8, 12}, dtype);
        const Tensor sum = sum_of(owned);
        const auto scattered = run_on(owned, [&](const Value& x) { return reduce_scatter(x, dim, ranks, "tp"); });
        const auto sliced = run_on(std::vector<Tensor>(owned.size(), sum),
                                   [&](const Value& x) { return rank_slice(x, dim - 3, ranks, "tp"); });
        for (int rank = 0; rank < ranks; ++rank) {
          const Tensor wanted = part_of(sum, dim, rank, ranks);
          EXPECT_EQ(difference(wanted, scattered[static_cast<std::size_t>(rank)], {}, true), "") << dim;
          EXPECT_EQ(difference(wanted, sliced[static_cast<std::size_t>(rank)], {}, true), "") << dim;
        }
        for (const Tensor& came : run_on(scattered, [&](const Value& x) { return all_gather(x, dim, ranks, "tp"); }))
          EXPECT_EQ(difference(sum, came, {}, true), "") << dim;
      }
}

TEST(OverRanks, ThreadsGatherCodesOfHalfAByte) {
  const std::vector<Tensor> owned = random_tensors(2, {3, 6}, DType::f4e2m1);
  for (const Tensor& came : run_on(owned, [&](const Value& x) { return all_gather(x, 0, 2, "tp"); }))
    for (std::int64_t rank = 0; rank < 2; ++rank)
      for (std::int64_t i = 0; i < 18; ++i)
        EXPECT_EQ(load_float(DType::f4e2m1, came.data(), rank * 18 + i),
                  load_float(DType::f4e2m1, owned[static_cast<std::size_t>(rank)].data(), i));
}

TEST(OverRanks, ThreadsTakeOperandsThatAreNotContiguous) {
  const std::vector<Tensor> wide = random_tensors(2, {4, 16}, DType::f32);
  std::vector<Tensor> columns, packed;
  for (const Tensor& tensor : wide) {
    Tensor part = tensor;
    part.meta = Meta::strided(DType::f32, {4, 6}, {16, 1});
    columns.push_back(part);
    packed.push_back(contiguous(part));
  }
  for (const Tensor& came : run_on(columns, [](const Value& x) { return all_reduce(x, 2, "tp"); }))
    EXPECT_EQ(difference(sum_of(packed), came, {}, true), "");
  const auto gathered = run_on(columns, [](const Value& x) { return all_gather(x, 0, 2, "tp"); });
  for (std::int64_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(difference(packed[static_cast<std::size_t>(rank)], part_of(gathered[0], 0, rank, 2), {}, true), "");
}

std::string refusal(const std::function<Value(const Value&)>& op, const Meta& meta) {
  Interpreter interpreter(context());
  return plain_message_of([&] { op(interpreter.value(Tensor::empty(meta))); });
}

TEST(OverRanks, SayWhatTheyCannotDo) {
  const Meta rows = Meta::tensor(DType::f32, {6, 4});
  EXPECT_EQ(refusal([](const Value& x) { return all_reduce(x, 2, "tp"); }, rows),
            "[all_reduce] wanted the 2 ranks of group tp, but this process is in no such group");
  EXPECT_EQ(refusal([](const Value& x) { return reduce_scatter(x, 0, 4, "tp"); }, rows),
            "[reduce_scatter] dim 0 of x must divide by the 4 ranks, but x is f32[6, 4]");
  EXPECT_EQ(refusal([](const Value& x) { return rank_slice(x, 2, 2, "tp"); }, rows),
            "[rank_slice] dim must be an axis of f32[6, 4], but is 2");
  EXPECT_EQ(refusal([](const Value& x) { return all_gather(x, 0, 0, "tp"); }, rows),
            "[all_gather] world_size must be in [1, 65536], but is 0");
  EXPECT_EQ(refusal([](const Value& x) { return all_gather(x, 0, 2, ""); }, rows),
            "[all_gather] group_name must name a group");
  EXPECT_EQ(refusal([](const Value& x) { return all_reduce(x, 2, "tp"); }, Meta::tensor(DType::i32, {6})),
            "[all_reduce] x must be of f32, bf16 or f16, but is i32[6]");
  EXPECT_EQ(refusal([](const Value& x) { return all_gather(x, -1, 2, "tp"); }, Meta::tensor(DType::f4e2m1, {4, 6})),
            "[all_gather] x must be contiguous and dim not its last, as two elements share a byte, but x is "
            "f4e2m1[4, 6]");
}

}  // namespace weft::over_ranks_test
