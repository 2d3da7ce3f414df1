#include "io/mxfp4_weight.h"

#include "base/error.h"

namespace weft {
namespace {

constexpr std::int64_t kGroup = 32, kGroupBytes = kGroup / 2;

}  // namespace

// The exponent, then bytes whose halves are elements j and j + 16.
void write_mxfp4_block(const std::byte* codes, std::byte exponent, std::byte* block) {
  const auto code = [&](std::int64_t element) {
    const auto byte = std::to_integer<unsigned>(codes[element / 2]);
    return element % 2 == 0 ? byte & 15U : byte >> 4U;
  };
  block[0] = exponent;
  for (std::int64_t j = 0; j < kGroupBytes; ++j)
    block[1 + j] = static_cast<std::byte>(code(j) | code(j + kGroupBytes) << 4U);
}

std::vector<NamedMeta> mxfp4_tensors(const QuantizationConfig& config, const std::string& weight,
                                     const std::vector<std::int64_t>& shape) {
  USER_CHECK(shape.size() == 3 && shape[2] % kGroup == 0,
             "[{}] must be a stack with rows of whole groups of {}, but the config makes it {}", weight, kGroup,
             shape_text(Shape(shape.begin(), shape.end())));
  const QuantizedNames names = quantized_names(config, weight);
  const Shape groups{shape[0], shape[1], shape[2] / kGroup};
  Shape blocks = groups;
  blocks.push_back(kGroupBytes);
  return {{names.codes, Meta::tensor(DType::u8, blocks)}, {names.scale, Meta::tensor(DType::u8, groups)}};
}

void check_mxfp4_stack(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                       const std::vector<std::int64_t>& shape) {
  for (const NamedMeta& wanted : mxfp4_tensors(config, weight, shape)) {
    Meta meta = checkpoint.tensor(wanted.name).meta;
    // Exponents may have the type that safetensors has for them.
    if (meta.dtype == DType::f8e8m0) meta.dtype = DType::u8;
    USER_CHECK(meta == wanted.meta, "[{}] tensor {} must be {}, but is {}", checkpoint.path(), wanted.name,
               wanted.meta.text(), meta.text());
  }
}

Meta mxfp4_stack_meta(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  Shape shape = checkpoint.tensor(quantized_names(config, weight).scale).meta.shape;
  shape.back() = shape.back() * Dim(kGroup);
  return Meta::tensor(DType::mxfp4, std::move(shape));
}

Tensor mxfp4_stack(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  const QuantizedNames names = quantized_names(config, weight);
  const Tensor &codes = checkpoint.tensor(names.codes), &exponents = checkpoint.tensor(names.scale);
  Tensor stack = Tensor::empty(mxfp4_stack_meta(checkpoint, config, weight));
  const std::int64_t blocks = element_count(exponents.meta.shape).number();
  for (std::int64_t i = 0; i < blocks; ++i)
    write_mxfp4_block(codes.data() + i * kGroupBytes, exponents.data()[i], stack.data() + i * (1 + kGroupBytes));
  return stack;
}

}  // namespace weft
