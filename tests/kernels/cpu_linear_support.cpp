#include "tests/kernels/cpu_linear_support.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/sample.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tests/kernels/guarded_memory.h"

namespace weft {
namespace {

// Random bytes with scales as random_weight promises them.
void fill_blocks(DType dtype, std::mt19937& random, std::byte* blocks, std::int64_t count) {
  const std::int64_t bytes = dtype_info(dtype).block_bytes;
  for (std::byte* at = blocks; at < blocks + count * bytes; at += bytes) {
    for (std::int64_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(random());
    for (int i = 0; i < (dtype == DType::q4_1 ? 2 : 1); ++i) {
      const std::uint16_t half = static_cast<std::uint16_t>((random() & 0x8000u) | random() % 0x3c01u);
      std::memcpy(at + 2 * i, &half, 2);
    }
  }
}

}  // namespace

LinearFamily::LinearFamily(const std::string& ceiling, int threads)
    : device_(describe_cpu(ceiling, threads)), threads_(threads), compiled_(ceiling, threads) {
  define_kernels_cpu_packing(registry_);
  define_kernels_cpu_linear(registry_);
  define_kernels_cpu_linear_int8(registry_);
  define_kernels_cpu_grouped_linear(registry_);
  define_kernels_cpu_embedding(registry_);
  registry_.prepare(device_);
}

Verdict LinearFamily::supports(const std::string& op, const std::vector<std::optional<Tensor>>& operands,
                               const Attributes& attributes, const Meta& result) const {
  std::vector<std::optional<Meta>> metas;
  for (const auto& operand : operands) metas.push_back(operand ? std::optional(operand->meta) : std::nullopt);
  return registry_.find(op, "cpu")->supports({metas, {&result, 1}, attributes, {}});
}

Tensor LinearFamily::call(const std::string& op, const std::vector<std::optional<Tensor>>& operands,
                          const Attributes& attributes, const Meta& result) {
  const Kernel* kernel = registry_.find(op, "cpu");
  std::vector<std::optional<Meta>> metas;
  std::vector<TensorView> views;
  for (const auto& operand : operands) {
    metas.push_back(operand ? std::optional(operand->meta) : std::nullopt);
    views.push_back(operand ? operand->view() : TensorView{});
  }
  const KernelRequest request{metas, {&result, 1}, attributes, {}};
  const Verdict verdict = kernel->supports(request);
  CHECK(verdict, "[{}] refused: {}", op, verdict.reason());
  const std::int64_t scratch_bytes = kernel->scratch_bytes ? kernel->scratch_bytes(request).number() : 0;
  GuardedMemory scratch(scratch_bytes), output(result.bytes().number());
  const Tensor tensor = output.tensor(result);
  const TensorView view = tensor.view();
  (run_ ? run_ : kernel->run)(
      {views, {&view, 1}, attributes, {scratch.data(), static_cast<std::size_t>(scratch_bytes)}, threads_});
  EXPECT_TRUE(scratch.intact()) << op << " wrote outside its scratch";
  EXPECT_TRUE(output.intact()) << op << " wrote outside its result";
  if (!run_) compiled_.expect_same(op, operands, attributes, {tensor});
  return tensor;
}

Tensor LinearFamily::pack(const Tensor& plain) const {
  ThreadPool one(1);
  for (const auto& [name, packing] : registry_.packings())
    if (packing.accepts(plain.meta, device_)) return pack_weight(packing, {&plain, 1}, one);
  CHECK(is_block(plain.meta.dtype), "no packing accepts {}", plain.meta.text());
  return plain;
}

Tensor random_weight(DType dtype, std::int64_t columns, std::int64_t depth, std::uint32_t seed) {
  if (!is_block(dtype)) return random_floats(dtype, {columns, depth}, seed);
  if (block_format(dtype).quantize == nullptr)
    return make_sample_tensor(SampleTensor("weight", {columns, depth}, dtype), dtype, seed);
  std::mt19937 random(seed);
  Tensor weight = Tensor::empty(Meta::tensor(dtype, {columns, depth}));
  fill_blocks(dtype, random, weight.data(), columns * depth / 32);
  return weight;
}

Tensor random_floats(DType dtype, Shape shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  Tensor tensor = Tensor::empty(Meta::tensor(dtype, std::move(shape)));
  const std::int64_t count = element_count(tensor.meta.shape).number();
  for (std::int64_t i = 0; i < count; ++i) store_float(dtype, tensor.data(), i, values(random));
  return tensor;
}

std::vector<DType> block_types() {
  std::vector<DType> types;
  for (const BlockFormat& format : block_formats()) types.push_back(format.dtype);
  return types;
}

std::vector<DType> float_types() { return {DType::f32, DType::f16, DType::bf16}; }

std::vector<DType> weight_types() {
  std::vector<DType> types = float_types();
  const std::vector<DType> blocks = block_types();
  types.insert(types.end(), blocks.begin(), blocks.end());
  return types;
}

std::vector<DType> integer_block_types() {
  std::vector<DType> types = block_types();
  std::erase_if(types, [](DType dtype) { return !has_integer_codes(dtype); });
  return types;
}

std::int64_t whole_blocks(DType dtype, std::int64_t depth) {
  const std::int64_t elements = dtype_info(dtype).block_elements;
  return (depth + elements - 1) / elements * elements;
}

}  // namespace weft
