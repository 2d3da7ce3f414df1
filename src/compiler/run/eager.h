#pragma once

// Runs each op at once, on concrete Values, and chooses kernels as for a compiled graph. For `native`, a composite op
// runs its meaning in the same way. With `--enforce-eager` this is the engine's whole forward pass; results are
// bit-identical to the compiled ones.
//
// Result types and the choice of a kernel depend on the types of a call only, and are cached for later calls of equal
// types. Only one thread at a time may use an evaluator; its results may be used on other threads and may outlive it.

#include <memory>
#include <unordered_map>

#include "compiler/run/run_kernel.h"

namespace weft {

class EagerEvaluator : public Evaluator {
 public:
  // Kernels are chosen for this token range, as in compiled mode.
  EagerEvaluator(const Context& context, TokenRange range) : EagerEvaluator(context, range, false) {}

  // From now on, kernels that launch run on the Context's device, as in compiled mode. Otherwise they run in the
  // emulator or in a library's stand-in, which may sum in another order (run_call).
  void launch_on_device() { is_on_device_ = true; }

  Value value(Tensor tensor) override { return Value::concrete(*this, std::move(tensor)); }
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;

 private:
  EagerEvaluator(const Context& context, TokenRange range, bool by_reference)
      : Evaluator(context.ops), context_(context), range_(range), by_reference_(by_reference) {}

  // What follows from the types of a call, and those types as the key.
  struct KnownCall {
    std::vector<std::optional<Meta>> operands;
    Attributes attributes;
    PreparedCall prepared;      // of a view, only the results; the kernel is null where the op's meaning runs
    bool by_reference = false;  // the op runs as its meaning, with reference kernels only
  };

  const KnownCall& prepare(const Op& op, const Values& operands, const Attributes& attributes);
  KnownCall prepare_anew(const Op& op, std::vector<std::optional<Meta>> operands, const Attributes& attributes);
  Candidate choose_for(const Op& op, const KernelRequest& request);
  Values evaluate_by_reference(const Op& op, const Values& operands, const Attributes& attributes);

  const Context& context_;
  // By op, computed at its first call; from then on the Context's priorities must not change.
  std::unordered_map<const Op*, std::vector<Candidate>> candidates_;
  std::unordered_multimap<std::size_t, KnownCall> known_calls_;
  StoragePool pool_;
  TokenRange range_;
  bool is_on_device_ = false;
  bool by_reference_;                          // whether this evaluator runs reference kernels only
  std::unique_ptr<EagerEvaluator> reference_;  // made when first needed
};

}  // namespace weft
