#pragma once

// One call of one kernel on concrete tensors: memory for the results, copies of what the kernel would write over unless
// the caller gives it away, scratch for the call. Shared by the eager evaluator and the interpreter.

#include "compiler/context.h"
#include "tensor/storage_pool.h"

namespace weft {

// What follows from the types of a call alone; calls of equal types share it.
struct PreparedCall {
  const Op* op = nullptr;
  const Kernel* kernel = nullptr;
  std::vector<Meta> results;
  std::vector<std::int64_t> result_bytes;  // of fresh ones
  std::vector<int> written;                // by operand: the result that takes its storage, or -1
  std::vector<TensorView> operand_views;   // without addresses; tensors alone
  std::vector<TensorView> result_views;    // likewise
  std::int64_t scratch_bytes = 0;
  bool is_empty = false;  // no result holds anything, so there is nothing to run
};

PreparedCall prepare_call(const Op& op, const Kernel& kernel, std::span<const std::optional<Meta>> operands,
                          const Attributes& attributes, std::vector<Meta> results);

// Memory for a result that takes no operand's storage. UserError for KV pages: how many there are is not part of their
// type.
Tensor fresh_result(const PreparedCall& call, std::size_t index, StoragePool& pool);

// UserError when what the op donates shares memory with another operand. The compiler refuses that when it
// functionalizes, whatever kernel will run.
void check_given_away(const Op& op, std::span<const Value> operands);

// `give_away`: the kernel may write over its donated operands where they lie; otherwise, or where their layout is not
// that of the result, it writes over copies. Results come from `pool`.
// `groups` as in KernelCall. With a device the tensors are the host's all the same: a kernel that launches runs on
// copies in the device's memory, through its queue, and its results are copied back; the host runs the others.
std::vector<Tensor> run_call(const PreparedCall& call, std::span<const Value> operands, const Attributes& attributes,
                             bool give_away, StoragePool& pool, ThreadPool& threads, const RankGroups* groups = nullptr,
                             cuda::StreamDevice* device = nullptr);

// Both at once, without a pool.
std::vector<Tensor> run_kernel(const Op& op, const Kernel& kernel, std::span<const Value> operands,
                               const Attributes& attributes, const std::vector<Meta>& results, bool give_away,
                               ThreadPool& threads, const RankGroups* groups = nullptr);

// The result of a view op: the operand's storage at an offset.
Tensor run_view(const Op& op, const Tensor& operand, const Attributes& attributes, const Meta& result);

}  // namespace weft
