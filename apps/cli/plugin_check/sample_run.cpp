#include "apps/cli/plugin_check/sample_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "kernels/strided.h"

namespace weft::plugin_check {
namespace {

TrialCall trial_call(const Op& op, const Sample& sample, DType dtype) {
  TrialCall call;
  call.text = op.name + "(";
  std::uint64_t seed = 1;
  for (std::size_t i = 0; i < op.schema.tensor_count(); ++i) {
    const Parameter& parameter = op.schema.parameters[i];
    const std::size_t before = call.operands.size();
    for (const SampleTensor& tensor : sample.tensors)
      if (tensor.name == parameter.name) call.operands.push_back(make_sample_tensor(tensor, dtype, seed++));
    if (call.operands.size() == before && parameter.type != ParameterType::tensor_list) call.operands.emplace_back();
    for (std::size_t k = before; k < call.operands.size(); ++k)
      call.text += (call.operands[k].defined() ? call.operands[k].meta.text() : "none") + ", ";
  }
  call.attributes = complete_attributes(op.schema, sample.attributes);
  for (const auto& [name, value] : call.attributes.entries()) call.text += name + "=" + value.text() + ", ";
  if (call.text.ends_with(", ")) call.text.resize(call.text.size() - 2);
  call.text += ")";
  return call;
}

bool writes(const Kernel& kernel, std::size_t operand) {
  return std::find(kernel.writes.begin(), kernel.writes.end(), static_cast<int>(operand)) != kernel.writes.end();
}

std::int64_t bytes_of_tensor(const Tensor& tensor) {
  if (tensor.meta.is_tensor() && tensor.meta.packed.empty() && tensor.meta.is_contiguous())
    return tensor.meta.bytes().number();
  return tensor.storage->bytes() - tensor.byte_offset;
}

Tensor copied(const Tensor& tensor, std::int64_t bytes) {
  Tensor copy;
  copy.meta = tensor.meta;
  copy.storage = Storage::allocate(std::max<std::int64_t>(bytes, 1));
  std::memcpy(copy.data(), tensor.data(), static_cast<std::size_t>(bytes));
  return copy;
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

}  // namespace

std::vector<TrialCall> trial_calls(const Op& op) {
  std::vector<TrialCall> calls;
  for (const Sample& sample : op.samples) {
    calls.push_back(trial_call(op, sample, DType::f32));
    if (!sample.is_generic()) continue;
    for (DType dtype : {DType::bf16, DType::f16}) calls.push_back(trial_call(op, sample, dtype));
  }
  return calls;
}

std::vector<std::optional<Meta>> metas_of(const std::vector<Tensor>& tensors) {
  std::vector<std::optional<Meta>> metas;
  for (const Tensor& tensor : tensors) metas.push_back(tensor.defined() ? std::optional(tensor.meta) : std::nullopt);
  return metas;
}

std::optional<TrialCall> with_rows(const Op& op, const TrialCall& call, std::int64_t first, std::int64_t rows) {
  if (op.rows_of < 0 || op.is_allocation || call.attributes.find("dim") != nullptr) return std::nullopt;
  const Tensor& counted = call.operands[static_cast<std::size_t>(op.rows_of)];
  if (!counted.defined() || !counted.meta.is_tensor() || counted.meta.rank() < 1) return std::nullopt;
  const std::int64_t all = counted.meta.shape[0].number();
  TrialCall part = call;
  for (Tensor& operand : part.operands) {
    if (!operand.defined()) continue;
    if (!operand.meta.is_tensor()) return std::nullopt;  // KV pages and batches tie rows together
    if (operand.meta.rank() < 1 || operand.meta.shape[0] != Dim(all)) continue;
    if (all > 0) operand.byte_offset += operand.meta.bytes().number() / all * first;
    operand.meta.shape[0] = rows;
  }
  return part;
}

std::string difference(const Tensor& wanted, const Tensor& came, Tolerance tolerance) {
  if (wanted.meta.shape != came.meta.shape || wanted.meta.dtype != came.meta.dtype)
    return fmt::format("is {} instead of {}", came.meta.text(), wanted.meta.text());
  const std::vector<double> a = elements_of(wanted), b = elements_of(came);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i]) continue;
    if (std::abs(a[i] - b[i]) <= tolerance.absolute + tolerance.relative * std::abs(a[i])) continue;
    return fmt::format("element {} of {} is {} instead of {}", i, wanted.meta.text(), b[i], a[i]);
  }
  return "";
}

TrialRun run_guarded(const Op& op, const Kernel& kernel, const OpTable& ops, const TrialCall& call, std::byte fill,
                     FaultRecord& record, ThreadPool& threads) {
  TrialRun run;
  const std::vector<std::optional<Meta>> operand_metas = metas_of(call.operands);
  std::vector<Meta> metas = infer_results(op, ops, operand_metas, call.attributes);
  // A kernel writes over its argument as it lies: its result has the argument's type.
  for (const Donation& donation : op.donates)
    if (writes(kernel, static_cast<std::size_t>(donation.argument)))
      metas[static_cast<std::size_t>(donation.result)] =
          call.operands[static_cast<std::size_t>(donation.argument)].meta;
  const KernelRequest request{operand_metas, metas, call.attributes, kernel.rows};
  if (const Verdict verdict = kernel.supports(request); !verdict) {
    run.refusal = verdict.reason();
    return run;
  }
  GuardedMemory memory(record);
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Tensor& given = call.operands[i];
    operands.push_back(given);
    if (!given.defined() || given.meta.kind == MetaKind::batch) continue;
    const std::int64_t bytes = bytes_of_tensor(given);
    const std::string& name = op.schema.parameters[std::min(i, op.schema.tensor_count() - 1)].name;
    operands[i] = memory.tensor("operand " + name, given.meta, bytes, {});
    std::memcpy(operands[i].data(), given.data(), static_cast<std::size_t>(bytes));
  }
  std::vector<Tensor> results(metas.size());
  for (const Donation& donation : op.donates)
    if (writes(kernel, static_cast<std::size_t>(donation.argument)))
      results[static_cast<std::size_t>(donation.result)] = operands[static_cast<std::size_t>(donation.argument)];
  for (std::size_t i = 0; i < metas.size(); ++i)
    if (!results[i].defined())
      results[i] = memory.tensor(fmt::format("result {}", i), metas[i], metas[i].bytes().number(), fill);
  const std::int64_t scratch_bytes = kernel.scratch_bytes ? kernel.scratch_bytes(request).number() : 0;
  const std::span<std::byte> scratch(scratch_bytes > 0 ? memory.buffer("scratch", scratch_bytes, fill) : nullptr,
                                     static_cast<std::size_t>(scratch_bytes));
  std::vector<TensorView> inputs, outputs;
  for (const Tensor& operand : operands) inputs.push_back(operand.defined() ? operand.view() : TensorView());
  for (const Tensor& result : results) outputs.push_back(result.view());
  kernel.run({inputs, outputs, call.attributes, scratch, threads});

  run.breach = memory.breach();
  for (std::size_t i = 0; i < operands.size() && run.breach.empty(); ++i) {
    const bool owned = !operands[i].defined() || operands[i].meta.kind == MetaKind::batch || writes(kernel, i);
    if (!owned && std::memcmp(operands[i].data(), call.operands[i].data(),
                              static_cast<std::size_t>(bytes_of_tensor(operands[i]))) != 0)
      run.breach = fmt::format("wrote over operand {}, which it does not declare", op.schema.parameters[i].name);
  }
  for (const Tensor& result : results) run.results.push_back(copied(result, bytes_of_tensor(result)));
  return run;
}

}  // namespace weft::plugin_check
