#include "compiler/run/eager.h"

#include <algorithm>

#include "base/error.h"
#include "ir/meaning.h"
#include "ir/meta_evaluator.h"

namespace weft {
namespace {

// A model makes a few dozen different calls. Only a caller whose sizes never repeat reaches this limit, which clears
// the table.
constexpr std::size_t kMostKnownCalls = 4096;

std::size_t hash_of(const Op& op, const Values& operands) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&op);
  for (const Value& operand : operands) {
    hash = hash * 31 + 1;
    if (!operand.present()) continue;
    for (const Dim& dim : operand.meta().shape)
      hash = (hash ^ static_cast<std::uint64_t>(dim.constant())) * 0x9E3779B97F4A7C15u;
  }
  return hash ^ (hash >> 32);
}

bool are_of(const Values& operands, const std::vector<std::optional<Meta>>& metas) {
  return std::equal(operands.begin(), operands.end(), metas.begin(), metas.end(), [](const Value& value, auto& meta) {
    return value.present() ? meta.has_value() && value.meta() == *meta : !meta.has_value();
  });
}

}  // namespace

Candidate EagerEvaluator::choose_for(const Op& op, const KernelRequest& request) {
  if (by_reference_) return {.provider = "reference", .kernel = context_.kernels.find(op.name, "reference")};
  const auto [candidates, is_new] = candidates_.try_emplace(&op);
  if (is_new)
    candidates->second =
        list_candidates(context_.kernels, context_.priorities, op.name, context_.options.batch_invariant);
  const FirstTimeScope counts(context_.first_time_work.get());
  return choose(candidates->second, request);
}

EagerEvaluator::KnownCall EagerEvaluator::prepare_anew(const Op& op, std::vector<std::optional<Meta>> operands,
                                                       const Attributes& attributes) {
  KnownCall call{std::move(operands), attributes, {.op = &op}};
  std::vector<Meta> results = infer_results(op, ops(), call.operands, attributes);
  const Kernel* kernel = nullptr;
  if (!op.is_view) {
    const Candidate chosen = choose_for(op, {call.operands, results, attributes, range_});
    kernel = chosen.kernel;
    if (kernel == nullptr && op.is_primitive()) kernel = &context_.kernel_for(op.name, "native");
    call.by_reference = kernel == nullptr && chosen.provider == "reference";
  }
  if (kernel == nullptr) {
    call.prepared.results = std::move(results);
  } else {
    call.prepared = prepare_call(op, *kernel, call.operands, attributes, std::move(results));
  }
  return call;
}

const EagerEvaluator::KnownCall& EagerEvaluator::prepare(const Op& op, const Values& operands,
                                                         const Attributes& attributes) {
  const std::size_t hash = hash_of(op, operands);
  const auto [begin, end] = known_calls_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    const KnownCall& call = known->second;
    if (call.prepared.op == &op && are_of(operands, call.operands) && attributes == call.attributes) return call;
  }
  KnownCall call = prepare_anew(op, operand_metas(operands), attributes);
  if (known_calls_.size() >= kMostKnownCalls) known_calls_.clear();
  return known_calls_.emplace(hash, std::move(call))->second;
}

Values EagerEvaluator::evaluate_by_reference(const Op& op, const Values& operands, const Attributes& attributes) {
  if (by_reference_) return run_meaning(op, *this, operands, attributes);
  if (reference_ == nullptr) reference_.reset(new EagerEvaluator(context_, range_, true));
  Values there, results;
  for (const Value& operand : operands)
    there.push_back(operand.present() ? reference_->value(operand.tensor()) : Value());
  for (const Value& result : run_meaning(op, *reference_, there, attributes)) results.push_back(value(result.tensor()));
  return results;
}

Values EagerEvaluator::evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool inplace) {
  const KnownCall& known = prepare(op, operands, attributes);
  const PreparedCall& call = known.prepared;
  if (inplace) check_donated(op, operands);
  if (op.is_view) return {value(run_view(op, operands[0].tensor(), attributes, call.results[0]))};
  if (known.by_reference) return evaluate_by_reference(op, operands, attributes);
  if (call.kernel == nullptr) return run_meaning(op, *this, operands, attributes);
  Values values;
  cuda::StreamDevice* const device = is_on_device_ ? context_.stream_device.get() : nullptr;
  for (Tensor& tensor :
       run_call(call, operands, attributes, inplace, pool_, *context_.threads, &context_.groups, device))
    values.push_back(value(std::move(tensor)));
  return values;
}

}  // namespace weft
