#include "io/model_dtype.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {

namespace {

constexpr std::string_view kTorch = "torch.";  // torch.bfloat16 is how Python prints the type

}  // namespace

void read_dtype(const JsonFields& fields, ModelConfig& config) {
  config.has_dtype = false;
  for (const auto key : {"dtype", "torch_dtype"}) {
    auto text = fields.find_text(key);
    if (!text || *text == "auto") continue;
    if (text->starts_with(kTorch)) text->erase(0, kTorch.size());
    config.has_dtype = true;
    config.dtype = *text == "float16" ? DType::f16 : *text == "bfloat16" ? DType::bf16 : DType::f32;
    USER_CHECK(config.dtype != DType::f32 || *text == "float32",
               "[{}] {} must be float32, float16 or bfloat16, but is {}", fields.where(), key, quote(*text));
    return;
  }
}

void take_dtype_of_tensors(const Checkpoint& checkpoint, ModelConfig& config) {
  const TensorEntry* embedding = checkpoint.find("model.embed_tokens.weight");
  const DType dtype = embedding == nullptr ? DType::bf16 : embedding->tensor.meta.dtype;
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) config.dtype = dtype;
  if (embedding == nullptr)
    config.warnings.push_back(fmt::format("[{}] config.json states no dtype: bfloat16 is assumed", checkpoint.path()));
}

}  // namespace weft
