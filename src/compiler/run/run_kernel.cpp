#include "compiler/run/run_kernel.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "passes/vector_places.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/batch.h"
#include "tensor/footprint.h"

namespace weft {
namespace {

// A copy with storage of its own, in the same layout.
Tensor moved(const Tensor& tensor, StoragePool& pool) {
  Tensor copy;
  copy.meta = tensor.meta;
  const std::int64_t bytes = tensor.meta.is_tensor() && tensor.meta.packed.empty()
                                 ? tensor.meta.bytes().number()
                                 : tensor.storage->bytes() - tensor.byte_offset;
  copy.storage = pool.allocate(bytes);
  std::memcpy(copy.data(), tensor.data(), static_cast<std::size_t>(bytes));
  return copy;
}

// A contiguous copy; KV pages keep their layout.
Tensor copied(const Tensor& tensor, StoragePool& pool) {
  return tensor.meta.is_tensor() && !tensor.meta.is_contiguous() ? contiguous(tensor) : moved(tensor, pool);
}

bool writes(const Kernel& kernel, int operand) {
  return std::find(kernel.writes.begin(), kernel.writes.end(), operand) != kernel.writes.end();
}

TensorView view_without_address(const Meta& meta) {
  if (!meta.is_tensor()) return {};
  return Tensor{meta, Storage::view_of(nullptr, 0, nullptr), 0}.view();
}

void set_address(TensorView& view, const Tensor& tensor) {
  if (!tensor.meta.is_tensor()) {
    view = tensor.view();
    return;
  }
  view.data = tensor.data();
  view.meta = &tensor.meta;
}

// The tensors of a call in a device's memory. The constructor copies what the kernel reads to the device.
class CallOnDevice {
 public:
  // A result that takes an operand's storage already has the content of that operand.
  CallOnDevice(const PreparedCall& call, std::span<const Tensor> operands, std::span<const Tensor> results,
               cuda::StreamDevice& device)
      : call_(call), device_(device) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const bool is_written_over =
          std::find(call.written.begin(), call.written.end(), static_cast<int>(i)) != call.written.end();
      results_.push_back(is_written_over ? there(results[i])
                                         : Tensor{results[i].meta, allocate(stored_bytes(results[i]))});
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const int result = call.written[i];
      operands_.push_back(result < 0 ? there(operands[i]) : results_[static_cast<std::size_t>(result)]);
    }
    if (call.scratch_bytes > 0) scratch_ = allocate(call.scratch_bytes);
  }

  // Waits until the results are in the host's memory.
  void run(const Attributes& attributes, ThreadPool& threads, const RankGroups* groups,
           std::span<const Tensor> results) {
    std::vector<TensorView> inputs = call_.operand_views, outputs = call_.result_views;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (operands_[i].defined()) set_address(inputs[i], operands_[i]);
    for (std::size_t i = 0; i < outputs.size(); ++i) set_address(outputs[i], results_[i]);
    const std::span<std::byte> scratch =
        scratch_ == nullptr ? std::span<std::byte>()
                            : std::span(scratch_->data(), static_cast<std::size_t>(call_.scratch_bytes));
    try {
      queue_call(*call_.kernel, {inputs, outputs, attributes, scratch, threads, groups, &device_.queue()});
      for (std::size_t i = 0; i < results.size(); ++i)
        device_.copy(results[i].data(), results_[i].data(), static_cast<std::size_t>(stored_bytes(results[i])));
      device_.synchronize();
    } catch (...) {
      device_.settle();  // queued work still uses these tensors
      throw;
    }
  }

 private:
  std::shared_ptr<Storage> allocate(std::int64_t bytes) { return device_.allocate(whole_cache_lines(bytes)); }

  Tensor there(const Tensor& tensor) {
    if (!tensor.defined()) return {};
    if (tensor.meta.kind != MetaKind::batch) return device_.upload(tensor);
    const Batch& batch = batch_of(tensor);
    Tensor shared{tensor.meta, device_.allocate_host(bytes_of_batch(batch.sequences, batch.max_blocks))};
    copy_batch(batch, shared.data());
    return shared;
  }

  const PreparedCall& call_;
  cuda::StreamDevice& device_;
  std::vector<Tensor> operands_, results_;
  std::shared_ptr<Storage> scratch_;
};

}  // namespace

PreparedCall prepare_call(const Op& op, const Kernel& kernel, std::span<const std::optional<Meta>> operands,
                          const Attributes& attributes, std::vector<Meta> results) {
  PreparedCall call{.op = &op, .kernel = &kernel, .results = std::move(results)};
  call.written.assign(operands.size(), -1);
  for (const Donation& donation : op.donates)
    if (writes(kernel, donation.argument) && operands[static_cast<std::size_t>(donation.argument)])
      call.written[static_cast<std::size_t>(donation.argument)] = donation.result;
  // An operand that is overwritten has the layout of the result.
  std::vector<std::optional<Meta>> metas(operands.begin(), operands.end());
  for (std::size_t i = 0; i < metas.size(); ++i) {
    if (call.written[i] >= 0) metas[i] = call.results[static_cast<std::size_t>(call.written[i])];
    call.operand_views.push_back(metas[i] ? view_without_address(*metas[i]) : TensorView());
  }
  call.is_empty = true;
  for (const Meta& meta : call.results) {
    call.result_views.push_back(view_without_address(meta));
    call.result_bytes.push_back(meta.is_tensor() ? meta.bytes().number() : 0);
    call.is_empty = call.is_empty && meta.is_tensor() && element_count(meta.shape) == Dim(0);
  }
  if (kernel.scratch_bytes && !call.is_empty)
    call.scratch_bytes = kernel.scratch_bytes({metas, call.results, attributes, {1, 1}}).number();
  return call;
}

Tensor fresh_result(const PreparedCall& call, std::size_t index, StoragePool& pool) {
  const Meta& meta = call.results[index];
  USER_CHECK(meta.is_tensor(),
             "[{}] KV pages are only updated in place, never allocated: clone_elimination cannot be "
             "skipped here",
             call.op->name);
  return {meta, pool.allocate(call.result_bytes[index]), 0};
}

void check_donated(const Op& op, std::span<const Value> operands) {
  const auto name = [&](std::size_t operand) -> const std::string& {
    return op.schema.parameters[std::min(operand, op.schema.tensor_count() - 1)].name;
  };
  for (const Donation& donation : op.donates) {
    const auto given = static_cast<std::size_t>(donation.argument);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (i != given && operands[i].present() && operands[given].present())
        USER_CHECK(!may_share_memory(operands[given].tensor(), operands[i].tensor()),
                   "[{}] maybe_inplace gives {} away, whose memory the same call also takes as {}: call it without "
                   "maybe_inplace, or clone one of them first",
                   op.name, name(given), name(i));
  }
}

std::vector<Tensor> run_call(const PreparedCall& call, std::span<const Value> operands, const Attributes& attributes,
                             bool give_away, StoragePool& pool, ThreadPool& threads, const RankGroups* groups,
                             cuda::StreamDevice* device) {
  std::vector<Tensor> results(call.results.size());
  std::vector<TensorView> inputs = call.operand_views, outputs = call.result_views;
  std::vector<Tensor> places(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].present()) continue;
    const Tensor& given = operands[i].tensor();
    const bool is_read = !begins_between_vectors(given, *call.kernel);  // others are copied first, as in lower
    if (call.written[i] < 0) {
      places[i] = is_read ? given : moved(given, pool);  // the kernel was chosen for the layout
      set_address(inputs[i], places[i]);
      continue;
    }
    const auto result = static_cast<std::size_t>(call.written[i]);
    results[result] = give_away && is_read && given.meta == call.results[result] ? given : copied(given, pool);
    set_address(inputs[i], results[result]);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) results[i] = fresh_result(call, i, pool);
    set_address(outputs[i], results[i]);
  }
  if (call.is_empty) return results;
  if (device != nullptr && call.kernel->launches) {
    CallOnDevice(call, places, results, *device).run(attributes, threads, groups, results);
    return results;
  }
  const auto scratch = call.scratch_bytes > 0 ? pool.allocate(call.scratch_bytes) : nullptr;
  const std::span<std::byte> scratch_bytes =
      scratch ? std::span(scratch->data(), static_cast<std::size_t>(scratch->bytes())) : std::span<std::byte>();
  call.kernel->run({inputs, outputs, attributes, scratch_bytes, threads, groups});
  return results;
}

std::vector<Tensor> run_kernel(const Op& op, const Kernel& kernel, std::span<const Value> operands,
                               const Attributes& attributes, const std::vector<Meta>& results, bool give_away,
                               ThreadPool& threads, const RankGroups* groups) {
  std::vector<std::optional<Meta>> metas;
  for (const Value& operand : operands)
    metas.push_back(operand.present() ? std::optional(operand.meta()) : std::nullopt);
  StoragePool pool;
  return run_call(prepare_call(op, kernel, metas, attributes, results), operands, attributes, give_away, pool, threads,
                  groups);
}

Tensor run_view(const Op& op, const Tensor& operand, const Attributes& attributes, const Meta& result) {
  Tensor view;
  view.meta = result;
  view.storage = operand.storage;
  view.byte_offset = operand.byte_offset + bytes_of(result.dtype, op.view_offset(operand.meta, attributes).number());
  return view;
}

}  // namespace weft
