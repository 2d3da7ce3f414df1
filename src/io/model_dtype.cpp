#include "io/model_dtype.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::array kDTypes = {std::pair{"float32", DType::f32}, std::pair{"float16", DType::f16},
                                std::pair{"bfloat16", DType::bf16}};
constexpr std::string_view kTorch = "torch.";  // torch.bfloat16 is how Python prints the type

}  // namespace

void read_dtype(const JsonFields& fields, ModelConfig& config) {
  config.has_dtype = false;
  for (const auto key : {"dtype", "torch_dtype"}) {
    const auto text = fields.find_text(key);
    if (!text || *text == "auto") continue;
    const std::string name = text->starts_with(kTorch) ? text->substr(kTorch.size()) : *text;
    const auto* const known =
        std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& one) { return one.first == name; });
    USER_CHECK(known != kDTypes.end(), "[{}] {} must be float32, float16 or bfloat16, but is {}", fields.where(), key,
               quote(*text));
    config.dtype = known->second;
    config.has_dtype = true;
    return;
  }
}

void take_dtype_of_tensors(const Checkpoint& checkpoint, std::string_view embedding, ModelConfig& config) {
  const auto find = [&](std::string_view name) { return checkpoint.is_dummy() ? nullptr : checkpoint.find(name); };
  const std::string_view module = embedding.substr(0, embedding.rfind('.') + 1);
  const TensorEntry* table = find(std::string(module) + "scales");  // of codes
  if (table == nullptr) table = find(embedding);
  // Scales of mlx-lm's floats are bytes.
  if (table != nullptr && !is_floating(table->tensor.meta.dtype)) table = find("model.norm.weight");
  config.dtype = DType::bf16;
  if (table == nullptr) {
    config.warnings.push_back(fmt::format("[{}] config.json states no dtype: bfloat16 is assumed", checkpoint.path()));
    return;
  }
  const DType stored = table->tensor.meta.dtype;
  if (stored == DType::f32 || stored == DType::f16) config.dtype = stored;
}

}  // namespace weft
