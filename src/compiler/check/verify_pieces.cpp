#include "compiler/check/verify_pieces.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "base/error.h"
#include "compiler/run/eager.h"
#include "compiler/run/graph_program.h"
#include "compiler/run/interpret.h"
#include "compiler/stitch.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/batch.h"

namespace weft {

// One Replay and its calls. One call at a time is active.
class PieceVerification::Watched {
 public:
  Watched(const PieceVerification& owner, Replay& replay, const CompileRecord& record)
      : owner_(owner),
        replay_(replay),
        record_(record),
        calls_(stitched_calls(*record.split, generate_pieces(*record.split, owner.context_, record.range),
                              owner.context_)),
        evaluator_(owner.context_, record.range) {
    evaluator_.launch_on_device();
    CHECK(!calls_.empty() && calls_.back().last_step == replay.plan().steps.size(),
          "the Plan of {} has {} steps, but its graph gives {}", record.graph, replay.plan().steps.size(),
          calls_.empty() ? 0 : calls_.back().last_step);
    for (const auto& piece : record.split->pieces)
      verdicts_.push_back({.graph = record.graph,
                           .piece = piece->name,
                           .range = token_range(*record.split, owner.context_.options),
                           .is_splitting = piece->kind == DefinitionKind::splitting});
    replay.on_start = [this] { start(); };
    replay.observer = [this](std::size_t step) { after(step); };
  }

  const std::vector<PieceVerdict>& verdicts() const { return verdicts_; }

 private:
  void start() {
    ++run_;
    made_.clear();
    pages_ = pages_of_batch();
    for (std::size_t i = 0; i < record_.split->inputs().size(); ++i) {
      const GraphValue& input = *record_.split->inputs()[i];
      const PlanView view{.slot = replay_.plan().inputs[i], .meta = input.meta};
      if (!input.param && input.meta.kind != MetaKind::batch)
        made_[&input] = copy_of(replay_.tensor_on_host(view), pages_);
    }
    current_ = 0;
    begin();
    finish_until(0);
  }

  void after(std::size_t step) { finish_until(step + 1); }

  // Finishes every call that ends before `step` and begins the next one. A piece of views only has no step.
  void finish_until(std::size_t step) {
    while (current_ < calls_.size() && calls_[current_].last_step <= step) {
      finish();
      if (++current_ < calls_.size()) begin();
    }
  }

  KvPages pages_of_batch() const {
    for (std::size_t i = 0; i < record_.split->inputs().size(); ++i) {
      const GraphValue& input = *record_.split->inputs()[i];
      const PlanView view{.slot = replay_.plan().inputs[i], .meta = input.meta};
      if (input.meta.kind == MetaKind::batch) return pages_of(batch_of(replay_.tensor_on_host(view)));
    }
    return std::nullopt;
  }

  PieceVerdict& verdict_of(const StitchedCall& call) {
    return *std::find_if(verdicts_.begin(), verdicts_.end(),
                         [&](const PieceVerdict& verdict) { return verdict.piece == call.piece->name; });
  }

  void begin() {
    const StitchedCall& call = calls_[current_];
    operands_.clear();
    spoiled_ = nullptr;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const GraphValue* value = call.node->operands[i];
      const auto made = made_.find(value);
      if (made == made_.end()) {  // a weight or a batch, which no step overwrites
        operands_.push_back(unchanged(*value, call.operands[i]));
        continue;
      }
      const Tensor tensor = replay_.tensor_on_host(call.operands[i]);
      const bool is_intact = difference_between(tensor, made->second, pages_).is_same;
      if (!is_intact && spoiled_ == nullptr) spoiled_ = value;
      operands_.push_back(is_intact ? made->second : copy_of(tensor, pages_));
    }
  }

  // Copies each weight from the device only once.
  Tensor unchanged(const GraphValue& value, const PlanView& view) {
    if (!value.param) return replay_.tensor_on_host(view);
    Tensor& weight = weights_[&value];
    if (!weight.defined()) weight = replay_.tensor_on_host(view);
    return weight;
  }

  void finish() {
    const StitchedCall& call = calls_[current_];
    PieceVerdict& verdict = verdict_of(call);
    ++verdict.calls;
    const Values wanted = run_graph(*call.piece, evaluator_, eager_inputs(call));
    bool differs = false;
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      const GraphValue* value = call.node->result(i);
      const Tensor came = copy_of(replay_.tensor_on_host(call.results[i]), pages_);
      const TensorDifference difference = difference_between(came, wanted[i].tensor(), pages_);
      made_[value] = came;
      if (difference.is_same) continue;
      const bool is_first = !differs && verdict.differing_calls == 0;
      differs = true;
      if (is_first || difference.largest > verdict.largest) note(verdict, call, *value);
      verdict.largest = std::max(verdict.largest, difference.largest);
      verdict.largest_ulps = std::max(verdict.largest_ulps, difference.largest_ulps);
    }
    if (differs) ++verdict.differing_calls;
    if (spoiled_ != nullptr) {
      if (verdict.is_right()) note(verdict, call, *spoiled_);
      ++verdict.spoiled_calls;
    }
    if (owner_.on_call)
      owner_.on_call({.verdict = verdict,
                      .record = record_,
                      .call = *call.node,
                      .operands = operands_,
                      .differs = differs || spoiled_ != nullptr});
  }

  // Operands that the graph may overwrite are copied.
  Values eager_inputs(const StitchedCall& call) {
    Values inputs;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      inputs.push_back(
          evaluator_.value(call.piece->inputs()[i]->overwrites ? copy_of(operands_[i], pages_) : operands_[i]));
    return inputs;
  }

  void note(PieceVerdict& verdict, const StitchedCall& call, const GraphValue& value) const {
    verdict.value = value.name;
    verdict.layer = layer_of(*call.node);
    verdict.run = run_;
  }

  const PieceVerification& owner_;
  Replay& replay_;
  const CompileRecord& record_;
  const std::vector<StitchedCall> calls_;
  EagerEvaluator evaluator_;
  std::vector<PieceVerdict> verdicts_;
  std::int64_t run_ = 0;
  std::map<const GraphValue*, Tensor> weights_;  // the copies on the host

  KvPages pages_;                             // the pages of this run's batch
  std::map<const GraphValue*, Tensor> made_;  // copies of the values that calls of this run pass on
  std::size_t current_ = 0;                   // the active call
  std::vector<Tensor> operands_;              // the operands of the active call
  const GraphValue* spoiled_ = nullptr;       // the first operand that changed since it was made
};

PieceVerification::PieceVerification(const Context& context) : context_(context) {}
PieceVerification::~PieceVerification() = default;

void PieceVerification::watch(Replay& replay, const CompileRecord& record) {
  CHECK(record.split != nullptr && record.split->stage == Stage::split, "the graph of {} was not kept", record.graph);
  watched_.push_back(std::make_unique<Watched>(*this, replay, record));
}

void PieceVerification::fail_where_different() {
  on_call = [](const VerifiedCall& call) {
    if (!call.differs) return;
    const PieceVerdict& verdict = call.verdict;
    const std::string what =
        verdict.differing_calls > 0
            ? fmt::format("gives other bits compiled than op by op: %{}, the largest difference is {}", verdict.value,
                          verdict.largest)
            : fmt::format("reads %{} with other bits than it was made with: something overwrote it", verdict.value);
    throw InternalError(fmt::format("[--check-replay] piece {}.{}{} {}", verdict.graph, verdict.piece,
                                    verdict.layer.empty() ? "" : " in layer " + verdict.layer, what),
                        std::source_location::current());
  };
}

std::string PieceVerification::op_by_op_text() const {
  cuda::StreamDevice* const device = context_.stream_device.get();
  if (device == nullptr) return "kernels of the host";
  return fmt::format("kernels of {}, and of the host where it has none", device->facts().name);
}

std::vector<PieceVerdict> PieceVerification::verdicts() const {
  std::vector<PieceVerdict> all;
  for (const auto& watched : watched_) all.insert(all.end(), watched->verdicts().begin(), watched->verdicts().end());
  return all;
}

}  // namespace weft
