#pragma once

// Runs one call of one kernel on concrete tensors. It allocates the results and the scratch, and copies each operand
// that the kernel would overwrite unless the caller donates it. The eager evaluator and the interpreter share it.

#include "compiler/context.h"
#include "tensor/storage_pool.h"

namespace weft {

// Everything that depends only on the types of a call; calls of equal types share it.
struct PreparedCall {
  const Op* op = nullptr;
  const Kernel* kernel = nullptr;
  std::vector<Meta> results;
  std::vector<std::int64_t> result_bytes;  // of results that need fresh memory
  std::vector<int> written;                // by operand: the result that reuses its storage, or -1
  std::vector<TensorView> operand_views;   // without addresses; only tensors have views
  std::vector<TensorView> result_views;    // likewise
  std::int64_t scratch_bytes = 0;
  bool is_empty = false;  // no result has elements, so nothing runs
};

PreparedCall prepare_call(const Op& op, const Kernel& kernel, std::span<const std::optional<Meta>> operands,
                          const Attributes& attributes, std::vector<Meta> results);

// Allocates a result that reuses no operand's storage. UserError for KV pages: their type does not contain the number
// of pages.
Tensor fresh_result(const PreparedCall& call, std::size_t index, StoragePool& pool);

// UserError when a donated operand aliases another operand. The compiler also rejects this when it functionalizes,
// whichever kernel will run.
void check_donated(const Op& op, std::span<const Value> operands);

// With `give_away` the kernel may overwrite its donated operands in place; without it, or where an operand's layout
// differs from the result's, the kernel overwrites copies. Results are allocated from `pool`. `groups` is as in
// KernelCall. The tensors are in host memory even with a device: a kernel that launches runs on copies in device
// memory, through the device's queue, and its results are copied back; the host runs all other kernels.
std::vector<Tensor> run_call(const PreparedCall& call, std::span<const Value> operands, const Attributes& attributes,
                             bool give_away, StoragePool& pool, ThreadPool& threads, const RankGroups* groups = nullptr,
                             cuda::StreamDevice* device = nullptr);

// prepare_call and run_call together, without a pool.
std::vector<Tensor> run_kernel(const Op& op, const Kernel& kernel, std::span<const Value> operands,
                               const Attributes& attributes, const std::vector<Meta>& results, bool give_away,
                               ThreadPool& threads, const RankGroups* groups = nullptr);

// The result of a view op: the operand's storage at an offset.
Tensor run_view(const Op& op, const Tensor& operand, const Attributes& attributes, const Meta& result);

}  // namespace weft
