#include "compiler/run/sample_call.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/convert.h"

namespace weft::sample_call_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

Op op_of(const char* schema) {
  Op op;
  op.schema = parse_schema(schema);
  op.name = op.schema.name;
  op.infer = [](const OpRequest& request) {
    for (const std::optional<Meta>& operand : request.operands)
      USER_CHECK(!operand || operand->shape == request.operand(0).shape, "[pair] shapes differ");
    return std::vector<Meta>{request.operand(0)};
  };
  return op;
}

Tensor row(DType dtype, const std::vector<double>& values) {
  Tensor tensor = Tensor::empty(Meta::tensor(dtype, {static_cast<std::int64_t>(values.size())}));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_double(dtype, tensor.data(), static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

TEST(SampleCalls, GiveEveryDtypeOfAGenericSampleAndOneOfAnother) {
  Op op = op_of("pair(Tensor a, Tensor? b, bool flag=False) -> Tensor");
  op.samples = {{{{"a", {2, 3}}, {"b", {3}, DType::f32}}, {{"flag", true}}}, {{{"a", {4}, DType::i8}}, {}}};
  std::vector<std::string> texts;
  for (const SampleCall& call : sample_calls(op)) texts.push_back(call.text);
  EXPECT_EQ(texts,
            (std::vector<std::string>{"pair(f32[2, 3], f32[3], flag=true)", "pair(bf16[2, 3], f32[3], flag=true)",
                                      "pair(f16[2, 3], f32[3], flag=true)", "pair(i8[4], none, flag=false)"}));
}

TEST(SampleCalls, KeepOperandsInTheOrderOfTheSchemaAndAbsentOnesUndefined) {
  const Op op = op_of("pair(Tensor a, Tensor? b, Tensor? c) -> Tensor");
  const SampleCall call = make_sample_call(op, {{{"c", {3}}, {"a", {2}}}, {}}, DType::f32);
  ASSERT_EQ(call.operands.size(), 3u);
  EXPECT_EQ(metas_of(call.operands), (std::vector<std::optional<Meta>>{Meta::tensor(DType::f32, {2}), std::nullopt,
                                                                       Meta::tensor(DType::f32, {3})}));
}

TEST(SampleCalls, TakeAllTensorsOfAList) {
  const Op op = op_of("pair(Tensor[] all) -> Tensor");
  EXPECT_EQ(make_sample_call(op, {{{"all", {2}}, {"all", {3}}}, {}}, DType::f32).operands.size(), 2u);
  EXPECT_TRUE(make_sample_call(op, {}, DType::f32).operands.empty());
}

TEST(RowsOfASample, AreThoseThatHaveToFollow) {
  const Sample sample{{{"a", {4}}, {"b", {4}}}, {}};
  const Op alike = op_of("pair(Tensor a, Tensor? b) -> Tensor");
  EXPECT_EQ(tensors_with_rows(alike, {}, sample), (std::set<std::size_t>{0, 1}));
  Op loose = alike;
  loose.infer = [](const OpRequest& request) { return std::vector<Meta>{request.operand(0)}; };
  EXPECT_EQ(tensors_with_rows(loose, {}, sample), (std::set<std::size_t>{0}));
  Op fixed = alike;
  fixed.infer = [](const OpRequest& request) {
    USER_CHECK(request.operand(0).shape[0] == Dim(4), "[pair] must have 4 rows");
    return std::vector<Meta>{request.operand(0)};
  };
  EXPECT_TRUE(tensors_with_rows(fixed, {}, sample).empty());
  Op without = alike;
  without.rows_of = -1;
  EXPECT_TRUE(tensors_with_rows(without, {}, sample).empty());
}

TEST(RowsOfASample, PointAtAsManyThingsAsBefore) {
  const Sample sample{{{"ids", {3}, DType::i64, Fill::indices}, {"table", {3, 8}}}, {}};
  const Sample more = with_row_count(sample, {0}, 50);
  EXPECT_EQ(more.tensors[0].shape[0], 50);
  EXPECT_EQ(more.tensors[1].shape[0], 3);
  for (const double id : elements_of(make_sample_tensor(more.tensors[0], DType::f32, 1))) EXPECT_LT(id, 3);
}

TEST(RowsOfASample, KeepSlotsOfPagesDistinct) {
  const Sample sample{{{"slots", {3}, DType::i64, Fill::indices}, SampleTensor::pages("kv", {}, 4)}, {}};
  const Sample more = with_row_count(sample, {0}, 50);
  const std::vector<double> slots = elements_of(make_sample_tensor(more.tensors[0], DType::f32, 1));
  EXPECT_EQ(std::set<double>(slots.begin(), slots.end()).size(), 50u);
}

TEST(Difference, IsNoneWithinTheTolerance) {
  const Tensor wanted = row(DType::f32, {100, 0, kNan, kInfinity, -kInfinity});
  EXPECT_EQ(difference(wanted, wanted, {}, true), "");
  const Tensor near = row(DType::f32, {100.5, -0.0, -kNan, kInfinity, -kInfinity});
  EXPECT_EQ(difference(wanted, near, {.relative = 0.01}), "");
  EXPECT_EQ(difference(wanted, near, {.absolute = 0.4}), "element 0 of f32[5] is 100.5 instead of 100");
}

TEST(Difference, OfTheSignOfZeroCountsWhereItIsExact) {
  const Tensor wanted = row(DType::f32, {0}), came = row(DType::f32, {-0.0});
  EXPECT_EQ(difference(wanted, came, {}), "");
  EXPECT_EQ(difference(wanted, came, {.absolute = 1}, true), "element 0 of f32[1] is -0 instead of 0");
}

TEST(Difference, FromInfinityOrNanIsNeverTolerated) {
  const Tolerance wide{.absolute = 1e3, .relative = 0.5};
  for (const auto& [wanted, came] :
       {std::pair(kInfinity, 1.0), {1.0, kInfinity}, {kInfinity, -kInfinity}, {kNan, 1.0}, {1.0, kNan}})
    EXPECT_NE(difference(row(DType::f32, {wanted}), row(DType::f32, {came}), wide), "") << wanted << " " << came;
}

TEST(Difference, OfTypesIsToldFirst) {
  EXPECT_EQ(difference(row(DType::f32, {1}), row(DType::f16, {1}), {}), "is f16[1] instead of f32[1]");
  EXPECT_EQ(difference(row(DType::f32, {1}), row(DType::f32, {1, 1}), {}), "is f32[2] instead of f32[1]");
  const Tensor pages = Tensor::empty(Meta::pages({}), 2);
  EXPECT_EQ(difference(pages, pages, {}, true), "");
  EXPECT_NE(difference(pages, Tensor::empty(Meta::pages({}), 3), {}), "");
  EXPECT_NE(difference(pages, Tensor::empty(Meta::pages({.heads = 2, .head_dim = 32}), 2), {}), "");
}

TEST(Difference, LooksAtElementsWhereverTheyLie) {
  Tensor wide = row(DType::f32, {1, 2, 9, 3, 4, 9});
  wide.meta = Meta::strided(DType::f32, {2, 2}, {3, 1});
  Tensor narrow = row(DType::f32, {1, 2, 3, 4});
  narrow.meta = Meta::tensor(DType::f32, {2, 2});
  EXPECT_EQ(elements_of(wide), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(difference(narrow, wide, {}, true), "");
}

}  // namespace weft::sample_call_test
