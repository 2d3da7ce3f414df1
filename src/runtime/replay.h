#pragma once

// Runs a Plan: a launch list of kernel calls over resolved addresses. The list is captured once; a run with another
// token count only changes the sizes in it, and a bound tensor only the addresses that look into it. Nothing is
// allocated between runs.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan.h"
#include "tensor/tensor.h"

namespace weft {

class Replay {
 public:
  // `groups`: those of the rank that runs it, null for a process that is alone.
  Replay(std::shared_ptr<const Plan> plan, ThreadPool& threads, const RankGroups* groups = nullptr);

  const Plan& plan() const { return *plan_; }
  std::int64_t arena_bytes() const { return arena_->bytes(); }

  // Gives input `index` (position among the graph's inputs) its tensor. It stays until bound again. UserError when the
  // type does not fit: `[forward] input kv_3 must be kv[..], but is ..`.
  void bind(std::size_t index, Tensor tensor);

  // Runs every step over what is bound. InternalError when an input is missing. The symbols are read off the bound
  // tensors; a value outside the plan's bounds is an InternalError. Zero rows run nothing.
  void run();

  // Result `index` of the last run; a view of the arena or of a bound tensor, valid until the next run.
  Tensor result(std::size_t index) const;

  // Called after every step with its index, for profiles; null for none.
  std::function<void(std::size_t step)> observer;

 private:
  struct SizePatch {  // a size or stride that holds a symbol
    std::int64_t* target;
    Dim value;
  };
  struct AddressPatch {  // an address that looks into a slot
    TensorView* view;
    Dim byte_offset;
  };
  struct Launch {
    const PlanStep* step;
    std::vector<TensorView> operands;
    std::vector<TensorView> results;
  };

  TensorView make_view(const PlanView& view) const;
  void capture(TensorView& view, const PlanView& from);
  void read_symbols();
  void apply_sizes();
  void apply_addresses(std::size_t slot);

  std::shared_ptr<const Plan> plan_;
  ThreadPool& threads_;
  const RankGroups* groups_;
  std::shared_ptr<Storage> arena_;
  std::vector<Tensor> bound_;  // by slot; arena slots stay empty
  std::vector<Launch> launches_;
  std::vector<SizePatch> sizes_;
  std::vector<std::vector<AddressPatch>> addresses_;  // by slot
  Bindings symbols_;
};

}  // namespace weft
