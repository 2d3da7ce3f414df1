#include "apps/cli/plugin_check/sample_run.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

namespace weft::plugin_check {
namespace {

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

}  // namespace

std::optional<SampleCall> with_rows(const Op& op, const SampleCall& call, std::int64_t first, std::int64_t rows) {
  if (op.rows_of < 0 || op.is_allocation || call.attributes.find("dim") != nullptr) return std::nullopt;
  const Tensor& counted = call.operands[static_cast<std::size_t>(op.rows_of)];
  if (!counted.defined() || !counted.meta.is_tensor() || counted.meta.rank() < 1) return std::nullopt;
  const std::int64_t all = counted.meta.shape[0].number();
  SampleCall part = call;
  for (Tensor& operand : part.operands) {
    if (!operand.defined()) continue;
    if (!operand.meta.is_tensor()) return std::nullopt;  // KV pages and batches tie rows together
    if (operand.meta.rank() < 1 || operand.meta.shape[0] != Dim(all)) continue;
    if (all > 0) operand.byte_offset += operand.meta.bytes().number() / all * first;
    operand.meta.shape[0] = rows;
  }
  return part;
}

TrialRun run_guarded(const Op& op, const Kernel& kernel, const OpTable& ops, const SampleCall& call, std::byte fill,
                     FaultRecord& record, ThreadPool& threads) {
  TrialRun run;
  const std::vector<std::optional<Meta>> operand_metas = metas_of(call.operands);
  std::vector<Meta> metas = infer_results(op, ops, operand_metas, call.attributes);
  // A kernel overwrites its argument in the argument's layout: the result has the argument's type.
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
      run.breach = fmt::format("overwrote operand {}, which it does not declare", op.schema.parameters[i].name);
  }
  for (const Tensor& result : results) run.results.push_back(copied(result, bytes_of_tensor(result)));
  return run;
}

}  // namespace weft::plugin_check
