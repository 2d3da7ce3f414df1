#include "codegen/find_regions.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/core.h>

#include "base/error.h"
#include "codegen/taken_rows.h"
#include "ir/alias.h"

namespace weft {
namespace {

bool is_view(const Node& node) { return node.op != nullptr && node.op->is_view; }

bool is_native_call(const Node& node) {
  return node.op != nullptr && node.provider == "native" && !node.op->is_view && !node.op->is_allocation;
}

// Nodes are identified by their index in the graph's order. No node depends on a view: a reader of a view depends on
// the value that the view looks into.
class Regions {
 public:
  explicit Regions(const Graph& piece) : piece_(piece) {
    for (const auto& node : piece.nodes()) {
      number_[node.get()] = static_cast<int>(nodes_.size());
      nodes_.push_back(node.get());
    }
    region_of_.assign(nodes_.size(), -1);
    find_dependencies();
  }

  Schedule run() {
    for (int i = 0; i < count(); ++i)
      if (is_row_candidate(node(i)) && !gives_f64(i) && !takes_rows(node(i))) place(i);
    for (int i = 0; i < count(); ++i)
      if (takes_rows(node(i)) && is_called_for(*node(i).result())) place(i);
    for (int i = 0; i < count(); ++i)
      if (is_native_call(node(i)) && region_of(i) < 0 && !is_read_through(i))
        schedule_.refusals.push_back({&node(i), why_not(i)});
    drop_empty();
    order();
    return std::move(schedule_);
  }

 private:
  int count() const { return static_cast<int>(nodes_.size()); }
  const Node& node(int i) const { return *nodes_[static_cast<std::size_t>(i)]; }
  int& region_of(int i) { return region_of_[static_cast<std::size_t>(i)]; }
  RowRegion& region(int i) { return schedule_.regions[static_cast<std::size_t>(i)]; }
  // Returns the node that computes what a value is or views; -1 for an input.
  int maker_of(const GraphValue* value) const {
    const GraphValue* root = storage_root(value);
    return root->producer == nullptr ? -1 : number_.at(root->producer);
  }

  // Whether anything outside the functions reads a value or a view of it.
  bool is_called_for(const GraphValue& value) {
    return std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) {
      if (use.node->op != nullptr && use.node->op->is_view) return is_called_for(*use.node->result());
      return use.node->kind == NodeKind::result || region_of(number_.at(use.node)) < 0;
    });
  }
  // Whether node i is a gather that only functions use; they read the rows from the table themselves.
  bool is_read_through(int i) { return takes_rows(node(i)) && region_of(i) < 0; }

  // Adds the node that computes a value and, if that is a gather, also the nodes that compute its operands.
  void add_makers(const GraphValue* value, std::vector<int>& makers) const {
    const int maker = maker_of(value);
    if (maker < 0) return;
    makers.push_back(maker);
    if (!takes_rows(node(maker))) return;
    for (const GraphValue* operand : node(maker).operands) add_makers(operand, makers);
  }
  void add_reader(const GraphValue* value, int reader, std::map<const GraphValue*, std::vector<int>>& readers) const {
    readers[home_of(value)].push_back(reader);
    const int maker = maker_of(value);
    if (maker < 0 || !takes_rows(node(maker))) return;
    for (const GraphValue* operand : node(maker).operands) add_reader(operand, reader, readers);
  }

  std::string why_not(int i) {
    if (!is_row_candidate(node(i))) return fmt::format("[{}] is not an op of rows", node(i).name);
    return gives_f64(i) ? "gives f64" : refusals_[i];
  }

  // Finds the nodes that must run before each node that is no view.
  void find_dependencies() {
    before_.resize(nodes_.size());
    std::map<const GraphValue*, std::vector<int>> readers;  // by home_of of the value
    for (int i = 0; i < count(); ++i) {
      if (is_view(node(i))) continue;
      auto& before = before_[static_cast<std::size_t>(i)];
      for (int written : node(i).writes) {
        const GraphValue* home = home_of(node(i).operands[static_cast<std::size_t>(written)]);
        // Inputs of a piece may alias each other; only the code outside the piece knows that.
        for (const auto& [other, earlier] : readers)
          if (other == home || (other->producer == nullptr && home->producer == nullptr))
            before.insert(before.end(), earlier.begin(), earlier.end());
      }
      for (const GraphValue* operand : node(i).operands) {
        if (operand == nullptr) continue;
        add_makers(operand, before);
        add_reader(operand, i, readers);
      }
    }
  }

  // Functions neither read nor store f64. So a node that computes f64 belongs to the region of its users.
  bool gives_f64(int i) const { return node(i).result()->meta.dtype == DType::f64; }

  // Adds the node and the nodes that compute its f64 operands, if they are in no region yet.
  void add_with_wide_operands(int i, std::vector<int>& added) {
    if (std::find(added.begin(), added.end(), i) != added.end()) return;
    added.push_back(i);
    for (const GraphValue* operand : node(i).operands)
      if (const int maker = maker_of(operand);
          maker >= 0 && region_of(maker) < 0 && is_row_candidate(node(maker)) && gives_f64(maker))
        add_with_wide_operands(maker, added);
  }

  // Puts the node into one region with the regions of all its operands if that is a row program. Otherwise it is merged
  // with as many of them as possible, or is a region of its own.
  void place(int i) {
    std::vector<int> added, others;
    add_with_wide_operands(i, added);
    for (const int part : added)
      for (const GraphValue* operand : node(part).operands) {
        const int maker = maker_of(operand);
        if (maker < 0 || region_of(maker) < 0) continue;
        if (std::find(others.begin(), others.end(), region_of(maker)) == others.end())
          others.push_back(region_of(maker));
      }
    std::string reason, other_reason;
    if (unite(others, added, others.empty() ? reason : other_reason)) return;
    bool is_placed = !others.empty() && unite({}, added, reason);
    for (const int other : others)
      is_placed = (is_placed ? unite({region_of(i), other}, {}, other_reason) : unite({other}, added, other_reason)) ||
                  is_placed;
    if (!is_placed) refusals_[i] = reason;
  }

  // Merges these regions and the nodes `added` into one region. Returns false and writes the reason if they are no row
  // program or cannot run as one step.
  bool unite(const std::vector<int>& regions, const std::vector<int>& added, std::string& reason) {
    std::vector<int> numbers = added;
    for (const int other : regions)
      for (const Node* part : region(other).nodes) numbers.push_back(number_.at(part));
    if (numbers.size() > kMostNodesOfRegion) {
      reason = fmt::format("a function has at most {} nodes", kMostNodesOfRegion);
      return false;
    }
    std::sort(numbers.begin(), numbers.end());
    if (has_way_around(numbers)) {
      reason = "a call is between them";
      return false;
    }
    std::vector<const Node*> nodes;
    for (const int i : numbers) nodes.push_back(&node(i));
    auto made = build_row_program(nodes, reason);
    if (!made) return false;
    for (const int other : regions) region(other).nodes.clear();
    const int home = regions.empty() ? static_cast<int>(schedule_.regions.size()) : regions.front();
    if (regions.empty()) schedule_.regions.emplace_back();
    region(home) = std::move(*made);
    for (const int i : numbers) region_of(i) = home;
    return true;
  }

  // Whether a step outside depends on one of the nodes, and another of the nodes depends on that step.
  bool has_way_around(const std::vector<int>& members) {
    const int first = members.front();
    const auto is_member = [&](int i) { return std::binary_search(members.begin(), members.end(), i); };
    const auto is_earlier = [&](int i) {
      return (region_of(i) < 0 ? i : number_.at(region(region_of(i)).nodes.back())) < first;
    };
    std::vector<int> waiting;
    std::set<int> seen;
    for (const int member : members)
      for (const int i : before_[static_cast<std::size_t>(member)])
        if (!is_member(i) && !is_earlier(i) && seen.insert(i).second) waiting.push_back(i);
    while (!waiting.empty()) {
      const int i = waiting.back();
      waiting.pop_back();
      std::vector<int> parts{i};
      if (region_of(i) >= 0) {
        parts.clear();
        for (const Node* part : region(region_of(i)).nodes) parts.push_back(number_.at(part));
      }
      for (const int part : parts)
        for (const int earlier : before_[static_cast<std::size_t>(part)]) {
          if (is_member(earlier)) return true;
          if (!is_earlier(earlier) && seen.insert(earlier).second) waiting.push_back(earlier);
        }
    }
    return false;
  }

  void drop_empty() {
    std::vector<RowRegion> kept;
    std::vector<int> moved(schedule_.regions.size(), -1);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      if (schedule_.regions[i].nodes.empty()) continue;
      moved[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(schedule_.regions[i]));
    }
    for (int& region : region_of_)
      if (region >= 0) region = moved[static_cast<std::size_t>(region)];
    schedule_.regions = std::move(kept);
  }

  // Orders the steps by their dependencies; if several are ready, the first in the graph's order is next. The position
  // of a region is that of its last node.
  void order() {
    const int regions = static_cast<int>(schedule_.regions.size());
    const auto step_of = [&](int i) { return region_of(i) >= 0 ? region_of(i) : regions + i; };
    std::map<int, int> place;  // by step
    std::map<int, std::set<int>> before, after;
    for (int i = 0; i < count(); ++i) {
      if (is_view(node(i)) || is_read_through(i)) continue;
      const int step = step_of(i);
      place[step] = i;
      before[step];
      for (int earlier : before_[static_cast<std::size_t>(i)]) {
        if (step_of(earlier) == step || is_read_through(earlier)) continue;
        before[step].insert(step_of(earlier));
        after[step_of(earlier)].insert(step);
      }
    }
    std::set<std::pair<int, int>> ready;  // place, step
    for (const auto& [step, waits] : before)
      if (waits.empty()) ready.insert({place.at(step), step});
    std::size_t done = 0;
    for (; !ready.empty(); ++done) {
      const int step = ready.begin()->second;
      ready.erase(ready.begin());
      add_step(step < regions ? nullptr : nodes_[static_cast<std::size_t>(step - regions)], step < regions ? step : -1);
      for (int next : after[step]) {
        before.at(next).erase(step);
        if (before.at(next).empty()) ready.insert({place.at(next), next});
      }
    }
    CHECK(done == place.size(), "the functions of piece {} depend on each other", piece_.name);
    for (const GraphValue* result : piece_.results()) add_views(result);
  }

  // Adds a step after the views that it reads.
  void add_step(const Node* node, int number) {
    for (const GraphValue* operand : node == nullptr ? region(number).inputs : inputs_of(*node)) add_views(operand);
    schedule_.steps.push_back({node, number});
  }

  static std::vector<const GraphValue*> inputs_of(const Node& node) {
    std::vector<const GraphValue*> inputs;
    for (const GraphValue* operand : node.operands)
      if (operand != nullptr) inputs.push_back(operand);
    return inputs;
  }

  void add_views(const GraphValue* value) {
    if (value->producer == nullptr || !is_view(*value->producer) || !added_.insert(value->producer).second) return;
    add_views(value->producer->operands[0]);
    schedule_.steps.push_back({value->producer, -1});
  }

  const Graph& piece_;
  std::vector<const Node*> nodes_;
  std::map<const Node*, int> number_;
  std::vector<int> region_of_;            // by node; -1 for none
  std::vector<std::vector<int>> before_;  // by node
  std::map<int, std::string> refusals_;   // by node
  std::set<const Node*> added_;           // views that are steps already
  Schedule schedule_;
};

// Maps the nodes and values of one piece to those at the same position in another piece.
class Counterparts {
 public:
  Counterparts(const Graph& from, const Graph& to) {
    for (std::size_t i = 0; i < from.inputs().size(); ++i) values_[from.inputs()[i].get()] = to.inputs()[i].get();
    for (auto one = from.nodes().begin(), same = to.nodes().begin(); one != from.nodes().end(); ++one, ++same) {
      nodes_[one->get()] = same->get();
      for (std::size_t i = 0; i < (*one)->results.size(); ++i) values_[(*one)->result(i)] = (*same)->result(i);
    }
  }

  const Node* of(const Node* node) const { return nodes_.at(node); }
  const GraphValue* of(const GraphValue* value) const { return values_.at(value); }
  template <typename T>
  std::vector<const T*> of(const std::vector<const T*>& all) const {
    std::vector<const T*> same;
    for (const T* one : all) same.push_back(of(one));
    return same;
  }

 private:
  std::unordered_map<const Node*, const Node*> nodes_;
  std::unordered_map<const GraphValue*, const GraphValue*> values_;
};

}  // namespace

Schedule schedule_piece(const Graph& piece) { return Regions(piece).run(); }

std::optional<Schedule> schedule_piece_like(const Graph& piece, const Graph& other, const Schedule& schedule) {
  const Counterparts counterparts(other, piece);
  Schedule made;
  for (const RowRegion& region : schedule.regions) {
    std::string reason;
    auto own = build_row_program(counterparts.of(region.nodes), reason);
    if (!own || own->inputs != counterparts.of(region.inputs) || own->outputs != counterparts.of(region.outputs))
      return std::nullopt;
    made.regions.push_back(std::move(*own));
  }
  for (const ScheduledStep& step : schedule.steps)
    made.steps.push_back({step.node == nullptr ? nullptr : counterparts.of(step.node), step.region});
  for (const RowRefusal& refusal : schedule.refusals)
    made.refusals.push_back({counterparts.of(refusal.node), refusal.reason});
  return made;
}

Schedule schedule_as_written(const Graph& piece) {
  Schedule schedule;
  for (const auto& node : piece.nodes()) schedule.steps.push_back({node.get(), -1});
  return schedule;
}

}  // namespace weft
