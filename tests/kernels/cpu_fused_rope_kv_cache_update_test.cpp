// The fused kernels have the same bits as the kernels of their parts, one after the other.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/kernels/cpu_rows_support.h"
#include "tests/thrown_message.h"

namespace weft::cpu_fused_rope_kv_cache_update_test {

constexpr std::int64_t kTokens = 70, kPositions = 20, kPages = 5;
constexpr std::int64_t kQueryHeads = 3, kKeyHeads = 2;

struct Case {
  DType dtype;
  DType pages;
  std::int64_t head_size;
  std::int64_t rotary_dim;
  bool neox;
};

// Columns of one product, as in a layer: query, key, value.
struct Layer {
  Tensor query, key, value, table, kv, positions, slots;
  std::optional<Tensor> weight;
  Attributes attributes;
};

Tensor columns_of(const Tensor& product, std::int64_t first, Shape shape) {
  Tensor columns = product;
  Shape strides(shape.size(), 1);
  strides[0] = product.meta.shape[1];
  if (shape.size() == 3) strides[1] = shape[2];
  columns.byte_offset += first * dtype_info(product.meta.dtype).block_bytes;
  columns.meta = Meta::strided(product.meta.dtype, std::move(shape), std::move(strides));
  return columns;
}

Layer layer_of(const Case& c) {
  const std::int64_t q = kQueryHeads * c.head_size, k = kKeyHeads * c.head_size, width = q + 2 * k;
  const Tensor product = tensor_of(c.dtype, {kTokens, width}, rows_with_specials(kTokens, width, 1));
  std::vector<std::int64_t> positions(kTokens), slots(kTokens);
  for (std::int64_t i = 0; i < kTokens; ++i) {
    positions[static_cast<std::size_t>(i)] = i * 7 % kPositions;
    slots[static_cast<std::size_t>(i)] = i % 9 == 4 ? -1 : i * 37 % (kPages * 16);
  }
  const KvLayout layout{.dtype = c.pages, .block = 16, .heads = kKeyHeads, .head_dim = c.head_size};
  return {.query = columns_of(product, 0, {kTokens, q}),
          .key = columns_of(product, q, {kTokens, k}),
          .value = columns_of(product, q + k, {kTokens, kKeyHeads, c.head_size}),
          .table = tensor_of(DType::f32, {kPositions, c.rotary_dim},
                             normal_values(static_cast<std::size_t>(kPositions * c.rotary_dim), 2)),
          .kv = Tensor::empty(Meta::pages(layout), kPages),
          .positions = indices_of(positions),
          .slots = indices_of(slots),
          .weight = tensor_of(c.dtype, {c.head_size}, normal_values(static_cast<std::size_t>(c.head_size), 3)),
          .attributes = {{"head_size", c.head_size}, {"rotary_dim", c.rotary_dim}, {"is_neox_style", c.neox}}};
}

std::vector<float> elements_of_pages(const Tensor& pages) {
  Tensor flat = pages;
  flat.meta = Meta::tensor(pages.meta.kv.dtype, {kPages * kv_page_elements(pages.meta.kv)});
  return values_of(flat);
}

template <class Check>
void for_each_machine_and_case(Check check) {
  for (const std::string& ceiling : vector_features_to_try())
    for (int threads : thread_counts_to_try())
      for (DType dtype : kFloatTypes)
        for (DType pages : kFloatTypes)
          for (auto [head_size, rotary_dim] : {std::pair{64, 64}, {64, 32}, {24, 6}})
            for (bool neox : {true, false}) {
              SCOPED_TRACE(fmt::format("{}, {} threads, {} in {} pages, {} of {}{}", ceiling, threads,
                                       dtype_text(dtype), dtype_text(pages), rotary_dim, head_size,
                                       neox ? ", neox" : ""));
              RowKernels kernels(ceiling, threads);
              check(kernels, layer_of({dtype, pages, head_size, rotary_dim, neox}));
            }
}

void expect_same(RowKernels& kernels, const Layer& layer, const std::vector<Tensor>& turned,
                 const std::vector<Tensor>& came) {
  const KvLayout& kv = layer.kv.meta.kv;
  Tensor key = turned[1];
  key.meta = Meta::tensor(key.meta.dtype, {kTokens, kv.heads, kv.head_dim});
  const auto pages = kernels.call("kv_cache_update", {key, layer.value, layer.kv, layer.slots}, {}, {layer.kv.meta});
  expect_same_bits(values_of(turned[0]), values_of(came[0]), "query");
  expect_same_bits(elements_of_pages(pages[0]), elements_of_pages(came[1]), "pages");
}

std::vector<Meta> metas_of_turned(const Layer& layer) {
  const DType dtype = layer.query.meta.dtype;
  return {Meta::tensor(dtype, layer.query.meta.shape), Meta::tensor(dtype, layer.key.meta.shape)};
}

TEST(CpuFusedRopeKvCacheUpdate, IsTheRotationAndTheUpdate) {
  for_each_machine_and_case([](RowKernels& kernels, const Layer& layer) {
    const std::vector<Meta> metas = metas_of_turned(layer);
    const auto turned = kernels.call("rotary_embedding", {layer.positions, layer.query, layer.key, layer.table},
                                     layer.attributes, metas);
    const auto came =
        kernels.call("fused_rope_kv_cache_update",
                     {layer.positions, layer.query, layer.key, layer.value, layer.table, layer.kv, layer.slots},
                     layer.attributes, {metas[0], layer.kv.meta});
    expect_same(kernels, layer, turned, came);
  });
}

TEST(CpuFusedQkNormRopeKvCacheUpdate, IsTheNormsTheRotationAndTheUpdate) {
  for_each_machine_and_case([](RowKernels& kernels, const Layer& layer) {
    const std::vector<Meta> metas = metas_of_turned(layer);
    Attributes attributes = layer.attributes;
    attributes.set("epsilon", 1e-6);
    // The key's heads have no weight.
    const auto turned = kernels.call("fused_qk_norm_rope",
                                     {layer.positions, layer.query, layer.key, layer.weight, std::nullopt, layer.table},
                                     attributes, metas);
    const auto came = kernels.call("fused_qk_norm_rope_kv_cache_update",
                                   {layer.positions, layer.query, layer.key, layer.value, layer.weight, std::nullopt,
                                    layer.table, layer.kv, layer.slots},
                                   attributes, {metas[0], layer.kv.meta});
    expect_same(kernels, layer, turned, came);
  });
}

TEST(CpuFusedRopeKvCacheUpdate, NamesAPositionOutsideTheTableAndASlotBeyondThePages) {
  RowKernels kernels("baseline", 1);
  const auto refusal = [&](const std::string& changed, std::int64_t to) -> std::string {
    const Layer layer = layer_of({DType::f32, DType::f16, 64, 64, true});
    (changed == "position" ? layer.positions : layer.slots).as<std::int64_t>()[69] = to;
    return message_of([&] {
      kernels.call("fused_rope_kv_cache_update",
                   {layer.positions, layer.query, layer.key, layer.value, layer.table, layer.kv, layer.slots},
                   layer.attributes, {metas_of_turned(layer)[0], layer.kv.meta});
    });
  };
  EXPECT_EQ(refusal("position", 19), "");
  EXPECT_EQ(refusal("slot", 79), "");
  EXPECT_NE(refusal("position", 20).find("but position 69 is 20"), std::string::npos);
  EXPECT_NE(refusal("position", -1).find("but position 69 is -1"), std::string::npos);
  EXPECT_NE(refusal("slot", 80).find("slots must be below 80, but slot 69 is 80"), std::string::npos);
}

}  // namespace weft::cpu_fused_rope_kv_cache_update_test
