#include "compiler/stitch.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/error.h"

namespace weft {
namespace {

using Views = std::map<const GraphValue*, PlanView>;

class Stitcher {
 public:
  Stitcher(const Graph& graph, const PieceSchedules& schedules, const Context& context)
      : graph_(graph), schedules_(schedules), context_(context) {
    plan_.name = graph.name;
    plan_.bounds = graph.bounds;
  }

  Plan run() {
    Views views;
    for (const auto& input : graph_.inputs()) {
      PlanSlot slot{.kind = input->param ? SlotKind::param : SlotKind::input, .name = input->name, .key = input->key};
      slot.meta = input->meta;
      slot.donated = input->donated;
      views[input.get()] = {.slot = add_slot(std::move(slot)), .meta = input->meta};
      plan_.inputs.push_back(views[input.get()].slot);
    }
    for (const auto& call : graph_.nodes()) inline_call(*call, views);
    for (const GraphValue* result : graph_.results()) plan_.results.push_back(views.at(result));
    return std::move(plan_);
  }

  // The calls are appended here unless it is null.
  std::vector<StitchedCall>* calls = nullptr;

 private:
  int add_slot(PlanSlot slot) {
    plan_.slots.push_back(std::move(slot));
    versions_.push_back(0);
    return static_cast<int>(plan_.slots.size()) - 1;
  }

  void inline_call(const Node& call, Views& outer) {
    const Graph* piece = graph_.find_piece(call.name);
    CHECK(piece != nullptr, "there is no piece named {}", call.name);
    const auto& [graph, schedule] = schedules_.at(piece->name);
    Views inner;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      PlanView view = outer.at(call.operands[i]);
      inner[graph->inputs()[i].get()] = std::move(view);
    }
    const std::size_t first = plan_.steps.size();
    if (calls != nullptr) calls->push_back({.node = &call, .piece = piece, .first_step = first});
    for (const ScheduledStep& step : schedule.steps) {
      if (step.node != nullptr) {
        add_step(*step.node, piece->name, call, inner);
      } else {
        add_function(schedule.regions[static_cast<std::size_t>(step.region)], piece->name, call, inner);
      }
    }
    for (std::size_t i = first; i < plan_.steps.size(); ++i)
      plan_.steps[i].is_splitting = piece->kind == DefinitionKind::splitting;
    for (std::size_t i = 0; i < call.results.size(); ++i) outer[call.result(i)] = inner.at(graph->results()[i]);
    if (calls != nullptr) complete(calls->back(), outer);
  }

  void complete(StitchedCall& stitched, const Views& views) const {
    for (const GraphValue* operand : stitched.node->operands) stitched.operands.push_back(views.at(operand));
    for (std::size_t i = 0; i < stitched.node->results.size(); ++i)
      stitched.results.push_back(views.at(stitched.node->result(i)));
    stitched.last_step = plan_.steps.size();
  }

  void add_step(const Node& node, const std::string& piece, const Node& call, Views& views) {
    if (node.op->is_view) {
      PlanView view = views.at(node.operands[0]);
      const Dim elements = node.op->view_offset(view.meta, node.attributes);
      const DTypeInfo& stored = dtype_info(view.meta.dtype);
      view.byte_offset = view.byte_offset + floordiv(elements, stored.block_elements) * Dim(stored.block_bytes);
      view.meta = node.result()->meta;
      views[node.result()] = std::move(view);
      return;
    }
    PlanStep step{
        .op = node.name, .kernel = &context_.kernel_for(node.name, node.provider), .attributes = node.attributes};
    step.piece = piece;
    step.layer = layer_of(call);
    std::vector<std::optional<Meta>> operands;
    for (const GraphValue* operand : node.operands) {
      step.operands.push_back(operand == nullptr ? PlanView{} : views.at(operand));
      operands.push_back(operand == nullptr ? std::nullopt : std::optional(operand->meta));
    }
    std::vector<Meta> results;
    for (const auto& result : node.results) results.push_back(result->meta);
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      step.results.push_back(result_view(node, i, step));
      views[node.result(i)] = step.results.back();
    }
    if (step.kernel->scratch_bytes)
      step.scratch_bytes = step.kernel->scratch_bytes({operands, results, node.attributes, {1, 1}});
    plan_.steps.push_back(std::move(step));
  }

  void add_function(const RowRegion& region, const std::string& piece, const Node& call, Views& views) {
    const Kernel*& kernel = kernels_[&region];
    if (kernel == nullptr) kernel = context_.generated->find(region.program.kernel_name());
    CHECK(kernel != nullptr, "{} was not compiled", region.program.name());
    PlanStep step{.op = kernel->op, .kernel = kernel, .piece = piece, .layer = layer_of(call)};
    for (const GraphValue* input : region.inputs) step.operands.push_back(views.at(input));
    for (const float scalar : region.scalars) step.operands.push_back(scalar_view(scalar));
    for (const GraphValue* output : region.outputs) {
      step.results.push_back(fresh_view(*output));
      views[output] = step.results.back();
    }
    const Attributes none;
    if (kernel->scratch_bytes) step.scratch_bytes = kernel->scratch_bytes({{}, {}, none, {1, 1}});
    plan_.steps.push_back(std::move(step));
  }

  // Equal scalars share a slot.
  PlanView scalar_view(float scalar) {
    Meta meta = Meta::tensor(DType::f32, {});
    meta.device = context_.device.id;
    const auto [slot, is_new] = scalars_.try_emplace(std::bit_cast<std::uint32_t>(scalar), 0);
    if (is_new) slot->second = add_slot({.kind = SlotKind::scalar, .meta = meta, .scalar = scalar});
    return {.slot = slot->second, .meta = std::move(meta)};
  }

  // A view of a new slot.
  PlanView fresh_view(const GraphValue& value) {
    const Meta& meta = value.meta;
    return {.slot = add_slot({.kind = SlotKind::arena, .meta = meta, .bytes = meta.bytes()}), .meta = meta};
  }

  // The view of result `index`: the donated argument if it is overwritten, otherwise a new slot.
  PlanView result_view(const Node& node, std::size_t index, const PlanStep& step) {
    for (const Donation& donation : node.op->donates) {
      const bool written = std::find(node.writes.begin(), node.writes.end(), donation.argument) != node.writes.end();
      if (donation.result != static_cast<int>(index) || !written) continue;
      PlanView view = step.operands[static_cast<std::size_t>(donation.argument)];
      view.version = ++versions_[static_cast<std::size_t>(view.slot)];
      return view;
    }
    const Meta& meta = node.result(index)->meta;
    USER_CHECK(meta.is_tensor(), "[stitch] {} must overwrite its KV pages: clone_elimination cannot be skipped here",
               node.name);
    return fresh_view(*node.result(index));
  }

  const Graph& graph_;
  const PieceSchedules& schedules_;
  const Context& context_;
  Plan plan_;
  std::vector<int> versions_;             // by slot: the number of steps that overwrite it
  std::map<std::uint32_t, int> scalars_;  // slots, by bits
  // By region, as all layers share a region and a name is a hash of the whole program text.
  std::map<const RowRegion*, const Kernel*> kernels_;
};

}  // namespace

std::vector<StitchedCall> stitched_calls(const Graph& split, const PieceSchedules& schedules, const Context& context) {
  std::vector<StitchedCall> calls;
  Stitcher stitcher(split, schedules, context);
  stitcher.calls = &calls;
  stitcher.run();
  return calls;
}

Plan stitch(const Graph& split, const PieceSchedules& schedules, const Context& context) {
  return Stitcher(split, schedules, context).run();
}

}  // namespace weft
