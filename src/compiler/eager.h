#pragma once

// Runs each op at once, on concrete Values, through the same choice of kernels as a compiled graph. `native` of a
// composite is its meaning, run the same way. With `--enforce-eager` this is the engine's whole forward pass; results
// are bit-identical to the compiled ones.
//
// Result types and the choice of a kernel follow from the types of a call alone, and are remembered for the next call
// of equal types. An evaluator is for one thread at a time; what it gives may go to others, and may outlive it.

#include <memory>
#include <unordered_map>

#include "compiler/run_kernel.h"

namespace weft {

class EagerEvaluator : public Evaluator {
 public:
  // `range` is the token range the choice of kernels is made for, as in compiled mode.
  EagerEvaluator(const Context& context, TokenRange range) : EagerEvaluator(context, range, false) {}

  // From now on kernels that launch run on the Context's device, as in compiled mode, and not in the emulator or a
  // library's stand-in, whose sums may be in another order (run_call).
  void launch_on_device() { is_on_device_ = true; }

  Value value(Tensor tensor) override { return Value::concrete(*this, std::move(tensor)); }
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;

 private:
  EagerEvaluator(const Context& context, TokenRange range, bool by_reference)
      : Evaluator(context.ops), context_(context), range_(range), by_reference_(by_reference) {}

  // A call as far as its types tell: the key, and what follows from it.
  struct KnownCall {
    std::vector<std::optional<Meta>> operands;
    Attributes attributes;
    PreparedCall prepared;      // of views: only the results. The kernel is null where the op's meaning is run
    bool by_reference = false;  // the meaning, with reference kernels alone
  };

  const KnownCall& prepare(const Op& op, const Values& operands, const Attributes& attributes);
  KnownCall prepare_anew(const Op& op, std::vector<std::optional<Meta>> operands, const Attributes& attributes);
  Candidate choose_for(const Op& op, const KernelRequest& request);
  Values evaluate_by_reference(const Op& op, const Values& operands, const Attributes& attributes);

  const Context& context_;
  // By op, made when it is first called; the Context's priorities must not change from then on.
  std::unordered_map<const Op*, std::vector<Candidate>> candidates_;
  std::unordered_multimap<std::size_t, KnownCall> known_calls_;
  StoragePool pool_;
  TokenRange range_;
  bool is_on_device_ = false;
  bool by_reference_;                          // whether this one runs reference kernels alone
  std::unique_ptr<EagerEvaluator> reference_;  // made when first needed
};

}  // namespace weft
