#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/kv_pages.h"
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

// The codes of a row of 32 values; a block with a value that is not finite is NaN.
std::vector<std::byte> codes_of(DType dtype, std::vector<float> row) {
  std::vector<std::byte> codes(static_cast<std::size_t>(bytes_of(dtype, 32)));
  if (dtype == DType::f8e4m3) {
    for (std::int64_t i = 0; i < 32; ++i) store_float(dtype, codes.data(), i, row[static_cast<std::size_t>(i)]);
    return codes;
  }
  const bool is_finite = std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
  if (!is_finite) row.assign(32, 0);
  quantize_row(dtype, row.data(), codes.data(), 32);
  if (!is_finite) store_float(DType::f16, codes.data(), 0, NAN);
  return codes;
}

TEST(CpuKvCacheUpdate, WritesRowsOfCodes) {
  std::vector<float> keys = normal_values(9 * 64, 1), values = normal_values(9 * 64, 2);
  const float specials[] = {INFINITY, -INFINITY, NAN, 1e6F, -1e-30F, 0.5F, 127.5F};
  for (std::size_t i = 0; i < std::size(specials); ++i) keys[i * 64 + 40] = values[i * 64 + 3] = specials[i];
  std::fill_n(keys.begin() + std::ptrdiff_t{7} * 64, 64, 0.0F);
  const std::vector<std::int64_t> slots{0, 1, 2, 3, 4, 5, -1, 7, 11};
  for_each_machine([&](RowKernels& kernels) {
    for (DType pages : {DType::f8e4m3, DType::q8_0}) {
      const KvLayout layout{.dtype = pages, .block = 4, .heads = 2, .head_dim = 32};
      const Tensor kv = Tensor::empty(Meta::pages(layout), 3);
      const auto result = kernels.call(
          "kv_cache_update",
          {tensor_of(DType::f32, {9, 2, 32}, keys), tensor_of(DType::f32, {9, 2, 32}, values), kv, indices_of(slots)},
          {}, {kv.meta});
      std::vector<std::byte> wanted(static_cast<std::size_t>(bytes_of(pages, 3 * kv_page_elements(layout))));
      for (std::size_t token = 0; token < slots.size(); ++token)
        for (std::int64_t head = 0; slots[token] >= 0 && head < 2; ++head) {
          const std::int64_t page = slots[token] / 4, place = slots[token] % 4;
          const auto put = [&](const std::vector<float>& from, std::int64_t element) {
            const auto first = from.begin() + static_cast<std::ptrdiff_t>(token * 64) + head * 32;
            const auto codes = codes_of(pages, std::vector<float>(first, first + 32));
            std::copy(codes.begin(), codes.end(), wanted.begin() + bytes_of(pages, element));
          };
          put(keys, kv_key_offset(layout, page, head) + kv_key_element(layout, place, 0));
          put(values, kv_value_offset(layout, page, head) + place * 32);
        }
      const std::vector<std::byte> came(result[0].data(), result[0].data() + wanted.size());
      EXPECT_EQ(came, wanted) << dtype_text(pages);
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
