// The part of Weights that reads the scales of quantized weights.

#include "base/error.h"
#include "engine/weights/weights.h"
#include "io/quantized_weight.h"
#include "kernels/library_product.h"
#include "tensor/convert.h"

namespace weft {
namespace {

// "X.weight" of "X.weight_scale".
std::string weight_of_scale(const std::string& key) {
  constexpr std::string_view kScale = "_scale";
  CHECK(key.ends_with(kScale), "scales of rows are named {}", key);
  return key.substr(0, key.size() - kScale.size());
}

}  // namespace

// On a GPU each row is padded to a multiple of kScaleStep, because the GPU's products read whole steps.
Meta Weights::block_scale_meta(const std::vector<std::string>& keys) const {
  const Meta meta = plain_meta(keys, WeightRole::scale);
  return is_on_gpu() ? Meta::strided(DType::f32, meta.shape, {align(meta.shape[1], kScaleStep), 1})
                     : Meta::tensor(DType::f32, meta.shape);
}

Tensor Weights::block_scales(const std::vector<std::string>& keys) {
  Tensor scales{.meta = block_scale_meta(keys)};
  const std::int64_t columns = scales.meta.shape[1].number(), apart = scales.meta.full_strides()[0].number();
  scales.storage = room(scales.meta.shape[0].number() * bytes_of(DType::f32, apart));
  auto* row = scales.as<float>();
  for (const std::string& key : keys) {
    const Tensor& part = checkpoint_.tensor(key);
    for (std::int64_t i = 0; i < part.meta.shape[0].number(); ++i, row += apart)
      convert_row(part.meta.dtype, part.data() + bytes_of(part.meta.dtype, i * columns), DType::f32,
                  reinterpret_cast<std::byte*>(row), columns);
    drop_pages(key);
  }
  return scales;
}

// A scale for all rows of X.weight, or one for each row. A GPU's products that have one scale for each row of x need
// one for each row of the weight, too.
Meta Weights::row_scale_meta(const std::vector<std::string>& keys) const {
  const auto has_one = [&](const std::string& weight) {
    const QuantizationConfig& config = config_of_codes(weight);
    return config.ternary != TernaryForm::none ||
           element_count(checkpoint_.tensor(quantized_names(config, weight).scale).meta.shape) == Dim(1);
  };
  const bool is_spread = is_on_gpu() && !config_of_codes(weight_of_scale(keys[0])).static_input;
  if (keys.size() == 1 && has_one(weight_of_scale(keys[0])) && !is_spread) return Meta::tensor(DType::f32, {1});
  Dim rows = 0;
  for (const std::string& key : keys) rows = rows + stored_meta(weight_of_scale(key), WeightRole::codes).shape[0];
  return Meta::tensor(DType::f32, {rows, 1});
}

Tensor Weights::row_scales(const std::vector<std::string>& keys) const {
  Tensor scales = Tensor::empty(row_scale_meta(keys));
  const bool is_one = scales.meta.rank() == 1;
  float* at = scales.as<float>();
  for (const std::string& key : keys) {
    const std::string weight = weight_of_scale(key);
    const Tensor part = quantized_scales(checkpoint_, config_of_codes(weight), weight);
    const bool spreads = element_count(part.meta.shape) == Dim(1);
    const std::int64_t rows = is_one ? 1 : stored_meta(weight, WeightRole::codes).shape[0].number();
    for (std::int64_t i = 0; i < rows; ++i) *at++ = load_float(part.meta.dtype, part.data(), spreads ? 0 : i);
  }
  return scales;
}

}  // namespace weft
