#include "tests/kernels/cpu_rows_support.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/check/tensor_difference.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#include "tests/kernels/guarded_memory.h"

namespace weft {

void define_kernels_cpu_rms_norm(KernelRegistry& registry);
void define_kernels_cpu_activation(KernelRegistry& registry);
void define_kernels_cpu_quantize(KernelRegistry& registry);
void define_kernels_cpu_rotary_embedding(KernelRegistry& registry);
void define_kernels_cpu_elementwise(KernelRegistry& registry);
void define_kernels_cpu_softmax(KernelRegistry& registry);
void define_kernels_cpu_attention(KernelRegistry& registry);
void define_kernels_cpu_kv_cache_update(KernelRegistry& registry);
void define_kernels_cpu_fused_rope_kv_cache_update(KernelRegistry& registry);
void define_kernels_cpu_recurrent(KernelRegistry& registry);

namespace {

std::vector<std::optional<Meta>> metas_of_given(const std::vector<std::optional<Tensor>>& operands) {
  std::vector<std::optional<Meta>> metas;
  for (const auto& operand : operands) metas.push_back(operand ? std::optional(operand->meta) : std::nullopt);
  return metas;
}

std::string kind_of(const std::string& op, const std::vector<std::optional<Tensor>>& operands) {
  std::string kind = op;
  for (const auto& operand : operands) kind += operand ? fmt::format(" {}", dtype_text(operand->meta.dtype)) : " none";
  return kind;
}

float element_at(const Tensor& tensor, std::int64_t index) {
  switch (tensor.meta.dtype) {
    case DType::f32:
      return tensor.as<float>()[index];
    case DType::f16:
      return f16_to_f32(tensor.as<std::uint16_t>()[index]);
    default:
      return bf16_to_f32(tensor.as<std::uint16_t>()[index]);
  }
}

}  // namespace

RowKernels::RowKernels(const std::string& ceiling, int threads)
    : device_(describe_cpu(ceiling, threads)), ops_(make_op_table()), threads_(threads) {
  if (ceiling == vector_features_to_try().back()) compiled_.emplace(ceiling, threads);
  define_kernels_cpu_rms_norm(registry_);
  define_kernels_cpu_activation(registry_);
  define_kernels_cpu_quantize(registry_);
  define_kernels_cpu_rotary_embedding(registry_);
  define_kernels_cpu_elementwise(registry_);
  define_kernels_cpu_softmax(registry_);
  define_kernels_cpu_attention(registry_);
  define_kernels_cpu_kv_cache_update(registry_);
  define_kernels_cpu_fused_rope_kv_cache_update(registry_);
  define_kernels_cpu_recurrent(registry_);
  registry_.prepare(device_);
}

Verdict RowKernels::supports(const std::string& op, const std::vector<std::optional<Tensor>>& operands,
                             const Attributes& attributes, const std::vector<Meta>& results) const {
  const std::vector<std::optional<Meta>> metas = metas_of_given(operands);
  return registry_.find(op, "cpu")->supports({metas, results, attributes, {}});
}

std::vector<Tensor> RowKernels::call(const std::string& op, const std::vector<std::optional<Tensor>>& given,
                                     const Attributes& given_attributes, const std::vector<Meta>& results) {
  std::vector<std::optional<Tensor>> operands = given;
  const Attributes attributes = complete_attributes(ops_.at(op).schema, given_attributes.entries());
  const Kernel* kernel = registry_.find(op, "cpu");
  const Verdict verdict = supports(op, operands, attributes, results);
  CHECK(verdict, "[{}] refused: {}", op, verdict.reason());
  std::vector<Tensor> outputs(results.size());
  for (const Donation& donation : ops_.at(op).donates) {
    if (std::count(kernel->writes.begin(), kernel->writes.end(), donation.argument) == 0) continue;
    auto& written = operands[static_cast<std::size_t>(donation.argument)];
    outputs[static_cast<std::size_t>(donation.result)] = *(written = copy_of(*written));
  }
  std::vector<GuardedMemory> guards;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (outputs[i].defined()) continue;
    guards.emplace_back(results[i].bytes().number());
    outputs[i] = guards.back().tensor(results[i]);
  }
  const std::vector<std::optional<Meta>> metas = metas_of_given(operands);
  const KernelRequest request{metas, results, attributes, {}};
  GuardedMemory scratch(kernel->scratch_bytes ? kernel->scratch_bytes(request).number() : 0);
  std::vector<TensorView> operand_views, result_views;
  for (const auto& operand : operands) operand_views.push_back(operand ? operand->view() : TensorView{});
  for (const Tensor& output : outputs) result_views.push_back(output.view());
  kernel->run(
      {operand_views, result_views, attributes, {scratch.data(), static_cast<std::size_t>(scratch.bytes())}, threads_});
  EXPECT_TRUE(scratch.intact()) << op << " wrote outside its scratch";
  for (const GuardedMemory& guard : guards) EXPECT_TRUE(guard.intact()) << op << " wrote outside its result";
  if (compiled_ && were_compiled_.insert(kind_of(op, given)).second)
    compiled_->expect_same(op, given, attributes, outputs);
  return outputs;
}

float rounded(DType dtype, float value) {
  if (dtype == DType::f16) return f16_to_f32(f32_to_f16(value));
  return dtype == DType::bf16 ? bf16_to_f32(f32_to_bf16(value)) : value;
}

std::vector<float> values_of(const Tensor& tensor) {
  const Tensor plain = contiguous(tensor);
  std::vector<float> values(static_cast<std::size_t>(element_count(plain.meta.shape).number()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element_at(plain, static_cast<std::int64_t>(i));
  return values;
}

Tensor tensor_of(DType dtype, Shape shape, const std::vector<float>& values) {
  Tensor tensor = Tensor::empty(Meta::tensor(dtype, std::move(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::f32) tensor.as<float>()[i] = values[i];
    if (dtype == DType::f16) tensor.as<std::uint16_t>()[i] = f32_to_f16(values[i]);
    if (dtype == DType::bf16) tensor.as<std::uint16_t>()[i] = f32_to_bf16(values[i]);
  }
  return tensor;
}

Tensor indices_of(const std::vector<std::int64_t>& values) {
  return Tensor::from_bytes(Meta::tensor(DType::i64, {static_cast<std::int64_t>(values.size())}), values.data());
}

Tensor with_row_padding(const Tensor& tensor, std::int64_t padding) {
  const std::int64_t columns = tensor.meta.shape.back().number();
  const std::int64_t rows = element_count(tensor.meta.shape).number() / columns;
  Shape strides = contiguous_strides(tensor.meta.shape);
  for (std::size_t i = 0; i + 1 < strides.size(); ++i) strides[i] = strides[i].number() / columns * (columns + padding);
  const std::vector<float> from = values_of(tensor);
  std::vector<float> to(static_cast<std::size_t>(rows * (columns + padding)), 99.0f);
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(from.begin() + row * columns, columns, to.begin() + row * (columns + padding));
  Tensor padded = tensor_of(tensor.meta.dtype, {rows * (columns + padding)}, to);
  padded.meta = Meta::strided(tensor.meta.dtype, tensor.meta.shape, strides);
  return padded;
}

std::vector<float> normal_values(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> rows_with_specials(std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  std::vector<float> values = normal_values(static_cast<std::size_t>(rows * columns), seed);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::int64_t row = 0; row < rows; ++row) {
    float* x = values.data() + row * columns;
    float& one = x[row * 13 % columns];
    switch (row % 8) {
      case 1:
        one = std::numeric_limits<float>::quiet_NaN();
        break;
      case 2:
        one = kInfinity;
        break;
      case 3:
        for (std::int64_t i = 0; i < columns; ++i) x[i] = i % 2 == 0 ? 0.0f : -0.0f;
        break;
      case 4:
        for (std::int64_t i = 0; i < columns; ++i) x[i] *= 1e-39f;
        break;
      case 5:
        for (std::int64_t i = 0; i < columns; ++i) x[i] *= 1e25f;
        break;
      case 6:
        for (std::int64_t i = 0; i < columns; ++i) x[i] *= 60.0f;
        one = -kInfinity;
        break;
      default:
        break;
    }
  }
  return values;
}

void expect_same_bits(const std::vector<float>& wanted, const std::vector<float>& came, const std::string& what) {
  ASSERT_EQ(wanted.size(), came.size()) << what;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i]) && std::isnan(came[i])) continue;
    ASSERT_EQ(bits_of_float(wanted[i]), bits_of_float(came[i]))
        << what << " at " << i << ": wanted " << wanted[i] << ", came " << came[i];
  }
}

}  // namespace weft
