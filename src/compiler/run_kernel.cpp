#include "compiler/run_kernel.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace weft {
namespace {

// A copy with storage of its own; KV pages keep their layout.
Tensor copied(const Tensor& tensor) {
  if (tensor.meta.is_tensor() && !tensor.meta.is_contiguous()) return contiguous(tensor);
  Tensor copy;
  copy.meta = tensor.meta;
  const std::int64_t bytes = tensor.meta.is_tensor() && tensor.meta.packed.empty()
                                 ? tensor.meta.bytes().number()
                                 : tensor.storage->bytes() - tensor.byte_offset;
  copy.storage = Storage::allocate(std::max<std::int64_t>(bytes, 1));
  std::memcpy(copy.data(), tensor.data(), static_cast<std::size_t>(bytes));
  return copy;
}

bool writes(const Kernel& kernel, int operand) {
  return std::find(kernel.writes.begin(), kernel.writes.end(), operand) != kernel.writes.end();
}

}  // namespace

std::vector<Tensor> run_kernel(const Op& op, const Kernel& kernel, std::span<const Value> operands,
                               const Attributes& attributes, const std::vector<Meta>& metas, bool give_away,
                               ThreadPool& threads) {
  std::vector<Tensor> tensors;
  std::vector<std::optional<Meta>> operand_metas;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool present = operands[i].present();
    const bool copy = present && !give_away && writes(kernel, static_cast<int>(i));
    tensors.push_back(!present ? Tensor() : copy ? copied(operands[i].tensor()) : operands[i].tensor());
    operand_metas.push_back(present ? std::optional(tensors.back().meta) : std::nullopt);
  }
  std::vector<Tensor> results(metas.size());
  for (const Donation& donation : op.donates)
    if (writes(kernel, donation.argument))
      results[static_cast<std::size_t>(donation.result)] = tensors[static_cast<std::size_t>(donation.argument)];
  bool empty = true;  // all results hold nothing
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) results[i] = Tensor::empty(metas[i]);
    empty = empty && metas[i].is_tensor() && element_count(metas[i].shape) == Dim(0);
  }
  if (empty) return results;

  std::shared_ptr<Storage> scratch;
  if (kernel.scratch_bytes) {
    const KernelRequest request{operand_metas, metas, attributes, {1, 1}};
    const std::int64_t bytes = kernel.scratch_bytes(request).number();
    if (bytes > 0) scratch = Storage::allocate(bytes);
  }
  std::vector<TensorView> inputs, outputs;
  for (const Tensor& tensor : tensors) inputs.push_back(tensor.defined() ? tensor.view() : TensorView());
  for (const Tensor& result : results) outputs.push_back(result.view());
  const std::span<std::byte> scratch_bytes =
      scratch ? std::span(scratch->data(), static_cast<std::size_t>(scratch->bytes())) : std::span<std::byte>();
  kernel.run({inputs, outputs, attributes, scratch_bytes, threads});
  return results;
}

Tensor run_view(const Op& op, const Tensor& operand, const Attributes& attributes, const Meta& result) {
  Tensor view;
  view.meta = result;
  view.storage = operand.storage;
  view.byte_offset = operand.byte_offset + bytes_of(result.dtype, op.view_offset(operand.meta, attributes).number());
  return view;
}

}  // namespace weft
