// embedding on the CPU, which reads the packed weights of linear.

#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/convert.h"
#include "tests/kernels/cpu_linear_support.h"

namespace weft::cpu_embedding_test {

TEST(CpuEmbedding, ConvertsRowsOfPlainAndPackedWeights) {
  for (const DType dtype : weight_types()) {
    const std::int64_t depth = whole_blocks(dtype, 96);
    const Tensor weight = random_weight(dtype, 70, depth, 18);
    const std::vector<std::int64_t> rows = {69, 0, 31, 32, 33, 0};
    for (const DType result : float_types()) {
      for (const DType ids_type : {DType::i64, DType::i32}) {
        Tensor ids = Tensor::empty(Meta::tensor(ids_type, {static_cast<std::int64_t>(rows.size())}));
        for (std::size_t i = 0; i < rows.size(); ++i)
          store_integer(ids_type, ids.data(), static_cast<std::int64_t>(i), rows[i]);
        LinearFamily family("", 2);
        for (const Tensor& form : {weight, family.pack(weight)}) {
          SCOPED_TRACE(form.meta.text() + " to " + std::string(dtype_text(result)));
          const Meta meta = Meta::tensor(result, {ids.meta.shape[0], depth});
          const Tensor found = family.call("embedding", {ids, form}, {{"dtype", result}}, meta);
          for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::int64_t bytes = bytes_of(result, depth);
            std::vector<std::byte> wanted(static_cast<std::size_t>(bytes));
            convert_row(dtype, weight.data() + rows[i] * bytes_of(dtype, depth), result, wanted.data(), depth);
            ASSERT_EQ(std::memcmp(found.data() + static_cast<std::int64_t>(i) * bytes, wanted.data(), wanted.size()), 0)
                << "row " << rows[i];
          }
        }
      }
    }
  }
}

TEST(CpuEmbedding, TakesAnyDepthOfFloatWeights) {
  for (const DType dtype : float_types()) {
    const Tensor weight = random_weight(dtype, 40, 37, 19);
    Tensor ids = Tensor::empty(Meta::tensor(DType::i32, {1}));
    ids.as<std::int32_t>()[0] = 33;
    LinearFamily family("", 1);
    const Tensor found =
        family.call("embedding", {ids, family.pack(weight)}, {{"dtype", dtype}}, Meta::tensor(dtype, {1, 37}));
    const std::int64_t bytes = bytes_of(dtype, 37);
    EXPECT_EQ(std::memcmp(found.data(), weight.data() + 33 * bytes, static_cast<std::size_t>(bytes)), 0);
  }
}

TEST(CpuEmbedding, RejectsAnIdOutsideTheTable) {
  LinearFamily family("", 1);
  const Tensor weight = random_weight(DType::f32, 4, 8, 20);
  Tensor ids = Tensor::empty(Meta::tensor(DType::i64, {1}));
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{4}}) {
    ids.as<std::int64_t>()[0] = id;
    EXPECT_THROW(family.call("embedding", {ids, weight}, {{"dtype", DType::f32}}, Meta::tensor(DType::f32, {1, 8})),
                 UserError);
  }
}

}  // namespace weft::cpu_embedding_test
