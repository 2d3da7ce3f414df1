#include "tests/kernels/cpu_linear_support.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/convert.h"
#include "tensor/float16.h"
#include "tests/kernels/guarded_memory.h"

namespace weft {
namespace {

std::int64_t number_of(const Dim& dim) { return dim.number(); }

const std::byte* block_of(const Tensor& weight, std::int64_t row, std::int64_t group) {
  const std::int64_t groups = number_of(weight.meta.shape[1]) / 32;
  return weight.data() + (row * groups + group) * dtype_info(weight.meta.dtype).block_bytes;
}

float half_at(const std::byte* from) {
  std::uint16_t code;
  std::memcpy(&code, from, 2);
  return f16_to_f32(code);
}

}  // namespace

LinearFamily::LinearFamily(const std::string& ceiling, int threads)
    : device_(describe_cpu(ceiling, threads)), threads_(threads), compiled_(ceiling, threads) {
  define_kernels_cpu_packing(registry_);
  define_kernels_cpu_linear(registry_);
  define_kernels_cpu_linear_int8(registry_);
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
  CHECK(false, "no packing accepts {}", plain.meta.text());
}

Tensor random_weight(DType dtype, std::int64_t columns, std::int64_t depth, std::uint32_t seed) {
  if (!is_block(dtype)) return random_floats(dtype, {columns, depth}, seed);
  std::mt19937 random(seed);
  Tensor weight = Tensor::empty(Meta::tensor(dtype, {columns, depth}));
  const DTypeInfo& info = dtype_info(dtype);
  for (std::int64_t block = 0; block < columns * depth / 32; ++block) {
    std::byte* at = weight.data() + block * info.block_bytes;
    for (std::int64_t i = 0; i < info.block_bytes; ++i) at[i] = static_cast<std::byte>(random());
    for (int i = 0; i < (dtype == DType::q4_1 ? 2 : 1); ++i) {
      const std::uint16_t half = static_cast<std::uint16_t>((random() & 0x8000u) | random() % 0x3c01u);
      std::memcpy(at + 2 * i, &half, 2);
    }
  }
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

int weight_code(const Tensor& weight, std::int64_t row, std::int64_t k) {
  const std::byte* block = block_of(weight, row, k / 32);
  const int i = static_cast<int>(k % 32);
  if (weight.meta.dtype == DType::q8_0) return static_cast<std::int8_t>(std::to_integer<int>(block[2 + i]));
  const std::byte both = block[(weight.meta.dtype == DType::q4_1 ? 4 : 2) + i % 16];
  const int code = std::to_integer<int>(i < 16 ? both & std::byte{15} : both >> 4);
  return weight.meta.dtype == DType::q4_0 ? code - 8 : code;
}

float weight_scale(const Tensor& weight, std::int64_t row, std::int64_t group) {
  return half_at(block_of(weight, row, group));
}

float weight_minimum(const Tensor& weight, std::int64_t row, std::int64_t group) {
  return half_at(block_of(weight, row, group) + 2);
}

}  // namespace weft
