// Rows by their numbers: copied in units of any size, converted between all types.

#include <gtest/gtest.h>

#include "compiler/run/sample_call.h"
#include "tests/cuda/cuda_context.h"

namespace weft::gather_rows_test {

constexpr std::int64_t kRows = 5, kOf = 11;

TEST(GatherRows, ConvertsBetweenAllTypes) {
  const auto context = cuda_context();
  for (const DType from : {DType::f32, DType::f16, DType::bf16})
    for (const DType to : {DType::f32, DType::f16, DType::bf16})
      for (const DType ids : {DType::i32, DType::i64}) {
        const Sample sample{{{"ids", {kRows}, ids, Fill::indices, kOf}, {"weight", {kOf, 1048}, from}},
                            {{"dtype", to}}};
        const SampleCall call = make_sample_call(context->ops.at("embedding"), sample, DType::f32);
        SCOPED_TRACE(call.text);
        const std::vector<Tensor> wanted = meaning_of(*context, "embedding", call.operands, call.attributes);
        EXPECT_EQ(difference_of_results(wanted, by_cuda(*context, "embedding", call.operands, call.attributes)), "");
      }
}

// 16, 8, 4, 2 and 1 bytes at once.
TEST(GatherRows, CopiesRowsOfAnyWidth) {
  const auto context = cuda_context();
  for (const auto& [dtype, columns] : std::vector<std::pair<DType, std::int64_t>>{
           {DType::f32, 1032}, {DType::f32, 6}, {DType::f32, 3}, {DType::bf16, 7}, {DType::i8, 5}}) {
    const Fill fill = dtype == DType::i8 ? Fill::codes : Fill::normal;
    const Sample sample{{{"x", {kOf, columns}, dtype, fill}, {"index", {kRows}, DType::i64, Fill::indices, kOf}}, {}};
    const SampleCall call = make_sample_call(context->ops.at("index_select"), sample, DType::f32);
    SCOPED_TRACE(call.text);
    const std::vector<Tensor> wanted = meaning_of(*context, "index_select", call.operands, call.attributes);
    EXPECT_EQ(difference_of_results(wanted, by_cuda(*context, "index_select", call.operands, call.attributes)), "");
  }
}

TEST(GatherRows, SaysWhyItRefuses) {
  const auto context = cuda_context();
  const auto refusal = [&](const char* op, const Sample& sample) {
    const SampleCall call = make_sample_call(context->ops.at(op), sample, DType::f32);
    return supports_of_cuda(*context, op, call.operands, call.attributes).reason();
  };
  const SampleTensor ids{"ids", {kRows}, DType::i64, Fill::indices, kOf};
  EXPECT_NE(refusal("embedding", {{ids, {"weight", {kOf, 12}}}, {{"dtype", DType::bf16}}}).find("rows have 12 columns"),
            std::string::npos);
  EXPECT_NE(refusal("embedding", {{ids, {"weight", {kOf, 64}, DType::q8_0}}, {}}).find("q8_0 becomes f32"),
            std::string::npos);
  const SampleTensor index{"index", {2}, DType::i64, Fill::indices, 3};
  EXPECT_NE(refusal("index_select", {{{"x", {4, 3}}, index}, {{"dim", 1}}}).find("not parts of dim 1"),
            std::string::npos);
}

}  // namespace weft::gather_rows_test
