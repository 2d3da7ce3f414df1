#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/kernels/cpu_rows_support.h"

namespace weft::cpu_kv_cache_update_test {

TEST(CpuKvCacheUpdate, WritesEachSlotAndNothingElse) {
  for_each_machine([](RowKernels& kernels) {
    for (DType pages : kFloatTypes) {
      for (DType dtype : kFloatTypes) {
        const KvLayout layout{.dtype = pages, .block = 16, .heads = 2, .head_dim = 24};
        const Tensor kv = Tensor::empty(Meta::pages(layout), 5);
        const std::vector<float> keys = normal_values(70 * 48, 1), values = normal_values(70 * 48, 2);
        std::vector<std::int64_t> slots(70);
        for (std::int64_t i = 0; i < 70; ++i) slots[static_cast<std::size_t>(i)] = i % 9 == 4 ? -1 : i * 37 % 80;
        const auto result = kernels.call(
            "kv_cache_update",
            {tensor_of(dtype, {70, 2, 24}, keys), tensor_of(dtype, {70, 2, 24}, values), kv, indices_of(slots)}, {},
            {kv.meta});
        std::vector<float> wanted(static_cast<std::size_t>(5 * kv_page_elements(layout)));
        for (std::int64_t i = 0; i < 70; ++i) {
          const std::int64_t slot = slots[static_cast<std::size_t>(i)];
          if (slot < 0) continue;
          for (std::int64_t head = 0; head < 2; ++head) {
            for (std::int64_t d = 0; d < 24; ++d) {
              const auto from = static_cast<std::size_t>((i * 2 + head) * 24 + d);
              wanted[kv_key_offset(layout, slot / 16, head) + d * 16 + slot % 16] =
                  rounded(pages, rounded(dtype, keys[from]));
              wanted[kv_value_offset(layout, slot / 16, head) + slot % 16 * 24 + d] =
                  rounded(pages, rounded(dtype, values[from]));
            }
          }
        }
        Tensor flat = result[0];
        flat.meta = Meta::tensor(pages, {static_cast<std::int64_t>(wanted.size())});
        expect_same_bits(wanted, values_of(flat), std::string(dtype_text(pages)));
      }
    }
  });
}

TEST(CpuKvCacheUpdate, NamesASlotBeyondThePages) {
  RowKernels kernels("baseline", 1);
  const Tensor kv = Tensor::empty(Meta::pages({.dtype = DType::f16, .block = 16, .heads = 1, .head_dim = 8}), 2);
  const Tensor row = tensor_of(DType::f32, {1, 1, 8}, normal_values(8, 1));
  EXPECT_THROW(kernels.call("kv_cache_update", {row, row, kv, indices_of({32})}, {}, {kv.meta}), UserError);
}

}  // namespace weft::cpu_kv_cache_update_test
