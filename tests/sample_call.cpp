#include "tests/sample_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "builtin/context.h"
#include "kernels/strided.h"

namespace weft {

std::shared_ptr<Context> test_context(const std::string& cpu_features, int threads) {
  Options options;
  options.cpu_features = cpu_features;
  options.threads = threads;
  return make_context(std::move(options));
}

std::vector<std::string> host_cpu_features() {
  std::vector<std::string> levels;
  const CpuFeatures host = describe_cpu("", 1).host;
  for (int level = 0; level <= static_cast<int>(host); ++level)
    levels.push_back(cpu_features_text(static_cast<CpuFeatures>(level)));
  return levels;
}

std::vector<DType> sample_dtypes(const Sample& sample) {
  if (!sample.is_generic()) return {DType::f32};
  return {DType::f32, DType::bf16, DType::f16};
}

SampleCall make_sample_call(const Op& op, const Sample& sample, DType dtype) {
  SampleCall call;
  call.text = op.name + "(";
  std::uint64_t seed = 1;
  for (std::size_t i = 0; i < op.schema.tensor_count(); ++i) {
    bool given = false;
    for (const SampleTensor& tensor : sample.tensors) {
      if (tensor.name != op.schema.parameters[i].name) continue;
      call.operands.push_back(make_sample_tensor(tensor, dtype, seed++));
      call.text += call.operands.back().meta.text() + ", ";
      given = true;
    }
    if (!given && op.schema.parameters[i].type != ParameterType::tensor_list) call.operands.emplace_back();
  }
  call.attributes = complete_attributes(op.schema, sample.attributes);
  for (const auto& [name, value] : call.attributes.entries()) call.text += name + "=" + value.text() + ", ";
  if (call.text.ends_with(", ")) call.text.resize(call.text.size() - 2);
  call.text += ")";
  return call;
}

std::vector<std::optional<Meta>> metas_of(const std::vector<Tensor>& tensors) {
  std::vector<std::optional<Meta>> metas;
  for (const Tensor& tensor : tensors)
    metas.push_back(tensor.defined() ? std::optional(tensor.meta) : std::optional<Meta>());
  return metas;
}

Values values_of(Evaluator& home, const std::vector<Tensor>& tensors) {
  Values values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.defined() ? Value::concrete(home, tensor) : Value());
  return values;
}

std::vector<double> elements_of(const Tensor& tensor) {
  const TensorView view = tensor.view();
  std::vector<double> elements;
  if (view.kind == MetaKind::kv) {
    const std::int64_t count = view.size[0] * kv_page_elements(tensor.meta.kv);
    for (std::int64_t i = 0; i < count; ++i) elements.push_back(load_double(view.dtype, view.data, i));
    return elements;
  }
  for_each_index(view.size, view.rank, [&](const std::int64_t* index) {
    std::int64_t at = 0;
    for (int i = 0; i < view.rank; ++i) at += index[i] * view.stride[i];
    elements.push_back(load_double(view.dtype, view.data, at));
  });
  return elements;
}

std::string difference(const Tensor& wanted, const Tensor& came, Tolerance tolerance, bool exact) {
  const std::vector<double> a = elements_of(wanted), b = elements_of(came);
  if (a.size() != b.size()) return fmt::format("{} elements instead of {}", b.size(), a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const bool same = a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]);
    if (same) continue;
    if (!exact && (a[i] == b[i] || std::abs(a[i] - b[i]) <= tolerance.absolute + tolerance.relative * std::abs(a[i])))
      continue;
    return fmt::format("element {} of {} is {} instead of {}", i, wanted.meta.text(), b[i], a[i]);
  }
  return "";
}

}  // namespace weft
