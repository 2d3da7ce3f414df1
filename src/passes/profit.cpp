#include "passes/profit.h"

#include <algorithm>
#include <set>

#include "ir/meta_evaluator.h"
#include "tensor/vector_lanes.h"

namespace weft {
namespace {

// Evaluates a size with every symbol equal to the number of rows.
std::int64_t at_rows(const Dim& size, std::int64_t rows) {
  if (size.is_number()) return size.number();
  std::set<std::string> symbols;
  size.collect_symbols(symbols);
  Bindings bindings;
  for (const std::string& symbol : symbols) bindings[symbol] = rows;
  return size.evaluate(bindings);
}

std::int64_t bytes_at(const Meta& meta, std::int64_t rows) {
  return meta.is_tensor() ? at_rows(meta.bytes(), rows) : 0;
}
std::int64_t elements_at(const Meta& meta, std::int64_t rows) {
  return meta.is_tensor() ? at_rows(element_count(meta.shape), rows) : 0;
}

bool moves(const Op& op) { return !op.is_view && !op.is_allocation; }

// Sums the costs of the primitives of a meaning.
class CostEvaluator : public MetaEvaluator {
 public:
  CostEvaluator(const OpTable& ops, std::int64_t rows) : MetaEvaluator(ops), rows_(rows) {}

  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool inplace) override {
    if (!op.is_primitive()) return op.meaning(*this, operands, attributes);
    Values results = MetaEvaluator::evaluate(op, operands, attributes, inplace);
    if (moves(op)) elements_ += op.cost * elements_of(operands, results);
    return results;
  }
  // The sum over primitives of elements times cost.
  std::int64_t elements() const { return elements_; }

 private:
  // The number of elements of the result, or of the operand if the op is a reduction.
  std::int64_t elements_of(const Values& operands, const Values& results) const {
    std::int64_t most = 0;
    for (const Value& result : results) {
      const bool reduces = !operands.empty() && operands[0].present() && is_reduced(operands[0].meta(), result.meta());
      most = std::max(most, elements_at(reduces ? operands[0].meta() : result.meta(), rows_));
    }
    return most;
  }

  static bool is_reduced(const Meta& from, const Meta& to) {
    return from.is_tensor() && to.is_tensor() &&
           std::equal(from.shape.begin(), from.shape.end(), to.shape.begin(), to.shape.end(),
                      [](const Dim& before, const Dim& after) { return after == before || after == Dim(1); });
  }

  const std::int64_t rows_;
  std::int64_t elements_ = 0;
};

}  // namespace

WorkModel::WorkModel(const OpTable& ops, const DeviceDescription& device, std::int64_t rows)
    : ops_(ops), rates_(rates_of(device)), rows_(rows) {}

WorkModel::Rates WorkModel::rates_of(const DeviceDescription& device) {
  // A server core at about 3 GHz copies 17 GB/s and issues two vector instructions per cycle. A multiprocessor of an
  // H200 issues four warp instructions per cycle, and its share of the bandwidth is 4.3 TB/s / 132 at 1.8 GHz.
  if (device.id.type == DeviceType::cpu) return {.lanes = vector_lanes(device.features), .bytes = 6, .instructions = 2};
  return {.lanes = 32, .bytes = 18, .instructions = 4};
}

Work WorkModel::of_call(Call call) {
  const auto is_same = [&](const Known& known) {
    return known.call.op == call.op && known.call.operands == call.operands && known.call.attributes == call.attributes;
  };
  const auto found = std::find_if(known_.begin(), known_.end(), is_same);
  if (found != known_.end()) return found->work;
  Work work;
  for (const std::optional<Meta>& operand : call.operands)
    if (operand) work.bytes += bytes_at(*operand, rows_);
  for (const Meta& result : call.results) work.bytes += bytes_at(result, rows_);
  CostEvaluator evaluator(ops_, rows_);
  Values values;
  for (const std::optional<Meta>& operand : call.operands)
    values.push_back(operand ? Value::of_meta(evaluator, *operand) : Value());
  evaluator.evaluate(*call.op, values, call.attributes, false);
  work.instructions = static_cast<double>(evaluator.elements()) / rates_.lanes;
  work.cycles = std::max(static_cast<double>(work.bytes) / rates_.bytes, work.instructions / rates_.instructions);
  constexpr std::size_t kMost = 32;  // somewhat more than the calls of a layer
  if (known_.size() == kMost) known_.erase(known_.begin());
  known_.push_back({std::move(call), work});
  return work;
}

Work WorkModel::of(std::span<Node* const> nodes) {
  Work work;
  for (const Node* node : nodes) {
    if (!moves(*node->op)) continue;
    Call call{.op = node->op, .operands = {}, .attributes = node->attributes, .results = {}};
    for (const GraphValue* operand : node->operands)
      call.operands.push_back(operand == nullptr ? std::nullopt : std::optional(operand->meta));
    for (const auto& result : node->results) call.results.push_back(result->meta);
    work += of_call(std::move(call));
  }
  return work;
}

Work WorkModel::of(std::span<const PlannedCall> calls) {
  Work work;
  for (const PlannedCall& call : calls)
    if (moves(*call.op)) work += of_call({call.op, call.operands, call.attributes, call.results});
  return work;
}

}  // namespace weft
