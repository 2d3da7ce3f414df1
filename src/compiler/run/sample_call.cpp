#include "compiler/run/sample_call.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/strided.h"

namespace weft {
namespace {

// Schema order; null for an absent optional tensor.
std::vector<const SampleTensor*> sample_operands(const Op& op, const Sample& sample) {
  std::vector<const SampleTensor*> operands;
  for (std::size_t i = 0; i < op.schema.tensor_count(); ++i) {
    const Parameter& parameter = op.schema.parameters[i];
    const std::size_t before = operands.size();
    for (const SampleTensor& tensor : sample.tensors)
      if (tensor.name == parameter.name) operands.push_back(&tensor);
    if (operands.size() == before && parameter.type != ParameterType::tensor_list) operands.push_back(nullptr);
  }
  return operands;
}

bool is_legal(const Op& op, const OpTable& ops, const Sample& sample) {
  try {
    const Attributes attributes = complete_attributes(op.schema, sample.attributes);
    for (const DType dtype : sample_dtypes(sample)) infer_results(op, ops, sample_metas(op, sample, dtype), attributes);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

bool is_close(double wanted, double came, Tolerance tolerance) {
  if (wanted == came) return true;
  return std::isfinite(wanted) && std::abs(wanted - came) <= tolerance.absolute + tolerance.relative * std::abs(wanted);
}

}  // namespace

std::vector<DType> sample_dtypes(const Sample& sample) {
  if (!sample.is_generic()) return {DType::f32};
  return {DType::f32, DType::bf16, DType::f16};
}

SampleCall make_sample_call(const Op& op, const Sample& sample, DType dtype) {
  SampleCall call;
  call.text = op.name + "(";
  std::uint64_t seed = 1;
  for (const SampleTensor* tensor : sample_operands(op, sample)) {
    Tensor& operand = call.operands.emplace_back();
    if (tensor != nullptr) operand = make_sample_tensor(*tensor, dtype, seed++);
    call.text += (operand.defined() ? operand.meta.text() : "none") + ", ";
  }
  call.attributes = complete_attributes(op.schema, sample.attributes);
  for (const auto& [name, value] : call.attributes.entries()) call.text += name + "=" + value.text() + ", ";
  if (call.text.ends_with(", ")) call.text.resize(call.text.size() - 2);
  call.text += ")";
  return call;
}

std::vector<std::optional<Meta>> sample_metas(const Op& op, const Sample& sample, DType dtype) {
  std::vector<std::optional<Meta>> metas;
  for (const SampleTensor* tensor : sample_operands(op, sample))
    metas.push_back(tensor == nullptr ? std::nullopt : std::optional(sample_meta(*tensor, dtype)));
  return metas;
}

std::vector<SampleCall> sample_calls(const Op& op, const Sample& sample) {
  std::vector<SampleCall> calls;
  for (const DType dtype : sample_dtypes(sample)) calls.push_back(make_sample_call(op, sample, dtype));
  return calls;
}

std::vector<SampleCall> sample_calls(const Op& op) {
  std::vector<SampleCall> calls;
  for (const Sample& sample : op.samples)
    for (SampleCall& call : sample_calls(op, sample)) calls.push_back(std::move(call));
  return calls;
}

std::set<std::size_t> tensors_with_rows(const Op& op, const OpTable& ops, const Sample& sample) {
  if (op.rows_of < 0) return {};
  const std::string& name = op.schema.parameters[static_cast<std::size_t>(op.rows_of)].name;
  const auto has_rows = [](const SampleTensor& tensor) {
    return tensor.kind == MetaKind::tensor && !tensor.shape.empty();
  };
  const auto first = std::find_if(sample.tensors.begin(), sample.tensors.end(),
                                  [&](const SampleTensor& tensor) { return tensor.name == name; });
  if (first == sample.tensors.end() || !has_rows(*first)) return {};
  const std::int64_t rows = first->shape[0];
  std::set<std::size_t> all, one = {static_cast<std::size_t>(first - sample.tensors.begin())};
  for (std::size_t i = 0; i < sample.tensors.size(); ++i)
    if (has_rows(sample.tensors[i]) && sample.tensors[i].shape[0] == rows) all.insert(i);
  // If another operand has tiles, they may have room for one more row but not for many.
  const auto takes = [&](const std::set<std::size_t>& tensors, std::int64_t more) {
    return is_legal(op, ops, with_row_count(sample, tensors, rows + more));
  };
  for (const std::set<std::size_t>& tensors : {one, all})
    if (takes(tensors, 1) && takes(tensors, 1000)) return tensors;
  return {};
}

Sample with_row_count(Sample sample, const std::set<std::size_t>& tensors, std::int64_t rows) {
  const bool has_pages = std::any_of(sample.tensors.begin(), sample.tensors.end(),
                                     [](const SampleTensor& tensor) { return tensor.kind == MetaKind::kv; });
  for (const std::size_t index : tensors) {
    SampleTensor& tensor = sample.tensors[index];
    if (tensor.fill == Fill::indices && tensor.limit == 0 && !has_pages) tensor.limit = tensor.shape[0];
    tensor.shape[0] = rows;
  }
  return sample;
}

std::vector<std::optional<Meta>> metas_of(const std::vector<Tensor>& tensors) {
  std::vector<std::optional<Meta>> metas;
  for (const Tensor& tensor : tensors) metas.push_back(tensor.defined() ? std::optional(tensor.meta) : std::nullopt);
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
    elements.push_back(load_double(view.dtype, view.data, element_at(view, index, view.rank)));
  });
  return elements;
}

std::string difference(const Tensor& wanted, const Tensor& came, Tolerance tolerance, bool exact) {
  if (wanted.meta.kind != came.meta.kind || wanted.meta.shape != came.meta.shape ||
      wanted.meta.dtype != came.meta.dtype || wanted.meta.kv != came.meta.kv)
    return fmt::format("is {} instead of {}", came.meta.text(), wanted.meta.text());
  const std::vector<double> a = elements_of(wanted), b = elements_of(came);
  if (a.size() != b.size()) return fmt::format("{} elements instead of {}", b.size(), a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const bool same = a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]);
    if (same || (!exact && is_close(a[i], b[i], tolerance))) continue;
    return fmt::format("element {} of {} is {} instead of {}", i, wanted.meta.text(), b[i], a[i]);
  }
  return "";
}

}  // namespace weft
