// Donation on random graphs. For all donated values, cuts of the graph and kernels that overwrite their arguments, a
// compiled graph, an eager one and the meaning give the same bits. Values that are not donated do not change. A read
// after a donation is refused with both lines.

#include <cstring>
#include <regex>

#include <fmt/core.h>

#include "base/error.h"
#include "compiler/pipeline.h"
#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "compiler/splitting_ops.h"
#include "ir/alias.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/all.h"
#include "runtime/replay.h"
#include "tests/compiler/overwriting_kernels.h"
#include "tests/graph_recipes.h"
#include "tests/small_layer.h"
#include "tests/thrown_message.h"

namespace weft::donation_property_slow_test {

constexpr TokenRange kRange = {1, 8};

// Every kind of kernel (those of the tree; all that may write over arguments do; some of their arguments; the meanings)
// and of cut (none, one op, several, at the very ops that take donations).
const std::vector<std::shared_ptr<Context>>& contexts() {
  static const auto all = [] {
    std::vector<std::shared_ptr<Context>> made = {
        overwriting_context({}, {}),
        overwriting_context({}, {"mul"}),
        overwriting_context({{"fused_add_rms_norm", {0, 1}}, {"rotary_embedding", {1, 2}}}, {"neg", "concat"}),
        overwriting_context({{"fused_add_rms_norm", {1}}, {"rotary_embedding", {1}}}, {"fused_add_rms_norm"}),
        overwriting_context({{"rotary_embedding", {1, 2}}}, {"rms_norm", "rotary_embedding", "clone"}),
        overwriting_context({}, {"add"}),
    };
    made.back()->priorities.set("fused_add_rms_norm", {"native"});
    return made;
  }();
  return all;
}

// Counts of the cases that occurred.
struct Counts {
  int placements = 0, donated = 0, pieces = 0, two_pieces_read_a_donated_input = 0, inputs_not_donated = 0;
  int inserted = 0, removed = 0, kept = 0, returned_copies = 0;
  int refused = 0, by_name = 0, through_view = 0, other_piece = 0, returned = 0, twice = 0;
  GraphFeatures features;
};

int nodes_that_may_be_given_to(const Graph& graph) {
  int count = 0;
  for (const auto& node : graph.nodes()) count += node->op->allow_inplace ? 1 : 0;
  return count;
}

// A copy in which exactly the chosen ones of those nodes are .maybe_inplace.
std::shared_ptr<Graph> placed(const Graph& graph, const std::vector<bool>& chosen) {
  auto copy = graph.clone();
  std::size_t next = 0;
  for (const auto& node : copy->nodes())
    if (node->op->allow_inplace) node->maybe_inplace = chosen[next++];
  return copy;
}

// The message with which it is refused, "" when it is taken.
std::string try_functionalize(Graph& graph, const Context& context) {
  PassContext passes = pass_context(context, kRange);
  return message_of([&] { functionalize(graph, passes); });
}

class Trial {
 public:
  Trial(const Context& context, const Graph& graph, int rows, Counts& counts)
      : context_(context), graph_(graph), counts_(counts), inputs_(layer_inputs(graph, rows)) {
    Interpreter interpreter(context_);
    wanted_ = tensors(run_graph(graph_, interpreter, values_of(interpreter, inputs_.copies())));
    splitting_ = resolve_splitting_ops(context_.options.splitting_ops, context_.ops);
  }

  void run() {
    const auto count = static_cast<std::size_t>(nodes_that_may_be_given_to(graph_));
    std::vector<bool> legal(count), some(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<bool> one(count);
      one[i] = true;
      legal[i] = try_one(*placed(graph_, one));
      some[i] = legal[i] && (i % 2 == 0 || *number_in(0, 2) == 1);
    }
    try_placement(std::vector<bool>(count));
    if (some != std::vector<bool>(count)) try_placement(some);
    if (legal != some) try_placement(legal);
  }

 private:
  static std::vector<Tensor> tensors(const Values& values) {
    std::vector<Tensor> all;
    for (const Value& value : values) all.push_back(value.tensor());
    return all;
  }

  // A graph in which one node gets its arguments donated: checks whether the compiler accepts it. If not, it must name
  // both lines, and the second one must really read a donated value.
  bool try_one(Graph& graph) {
    const Node* giver = nullptr;
    for (const auto& node : graph.nodes())
      if (node->maybe_inplace) giver = node.get();
    const auto positions = node_positions(graph);
    const std::string message = try_functionalize(graph, context_);
    if (message.empty()) return true;
    RC_LOG() << message << "\n";
    ++counts_.refused;
    const bool twice = message.find("by one call") != std::string::npos;
    counts_.twice += twice ? 1 : 0;
    counts_.by_name += message.find(" through ") == std::string::npos ? 1 : 0;
    counts_.through_view += message.find(" through ") != std::string::npos ? 1 : 0;
    counts_.returned += message.find(" returns it") != std::string::npos ? 1 : 0;
    std::vector<int> lines;
    static const std::regex line("line ([0-9]+), `");
    for (std::sregex_iterator it(message.begin(), message.end(), line); it != std::sregex_iterator(); ++it)
      lines.push_back(std::stoi((*it)[1]));
    RC_ASSERT(lines.size() == (twice ? 1u : 2u));
    RC_ASSERT(lines[0] == giver->line);
    std::set<const GraphValue*> given;
    for (const Donation& donation : giver->op->donates)
      given.insert(storage_root(giver->operands[static_cast<std::size_t>(donation.argument)]));
    if (twice) return false;
    const Node* user = graph.result_node()->line == lines[1] ? graph.result_node() : nullptr;
    bool cut = false;
    for (const auto& node : graph.nodes()) {
      if (node->line == lines[1]) user = node.get();
      const bool between = positions.at(node.get()) > positions.at(giver) && (user == nullptr || user == node.get());
      cut = cut || (between && (is_splitting(*node) != is_splitting(*giver)));
    }
    RC_ASSERT(user != nullptr);
    RC_ASSERT(positions.at(user) > positions.at(giver));
    RC_ASSERT(std::any_of(user->operands.begin(), user->operands.end(), [&](const GraphValue* operand) {
      return operand != nullptr && given.contains(storage_root(operand));
    }));
    counts_.other_piece += cut ? 1 : 0;
    return false;
  }

  bool is_splitting(const Node& node) const {
    return std::find(splitting_.begin(), splitting_.end(), node.name) != splitting_.end();
  }

  void try_placement(const std::vector<bool>& chosen) {
    const auto traced = placed(graph_, chosen);
    ++counts_.placements;
    counts_.features += features_of(*traced);
    RC_LOG() << "of\n" << display(*traced);
    const auto graph = traced->clone();
    const Compiled compiled = compile(*graph, context_, kRange, {});
    RC_LOG() << "came\n" << display(*graph);
    count(compiled, *graph);
    check_compiled(*compiled.plan);
    check_eager(*traced, *compiled.plan);
  }

  void count(const Compiled& compiled, const Graph& split) {
    counts_.pieces += static_cast<int>(split.nodes().size());
    for (const auto& input : split.inputs())
      counts_.two_pieces_read_a_donated_input += input->donated && input->uses.size() > 1 ? 1 : 0;
    for (const PassRecord& pass : compiled.record.passes) {
      for (const auto& [name, number] : pass.result.counts) {
        if (pass.name == "functionalize" && name == "functionalized") counts_.donated += number;
        if (pass.name == "lower" && name == "clones") counts_.inserted += number;
        if (pass.name == "clone_elimination" && name == "removed") counts_.removed += number;
      }
      counts_.kept += static_cast<int>(pass.result.kept_clones.size());
      for (const auto& [node, reason] : pass.result.kept_clones) RC_ASSERT(!reason.empty());
    }
  }

  void check_compiled(const Plan& plan) {
    Replay replay(std::make_shared<const Plan>(plan), *context_.threads);
    const std::vector<Tensor> bound = inputs_.copies();
    for (std::size_t i = 0; i < bound.size(); ++i) replay.bind(i, bound[i]);
    replay.run();
    std::vector<Tensor> came;
    for (std::size_t i = 0; i < wanted_.size(); ++i) came.push_back(replay.result(i));
    check_same(came, "compiled");
    check_inputs(bound, plan, "compiled");
    // A copy that is returned is the caller's own.
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const GraphValue* result = graph_.results()[i];
      if (result->producer == nullptr || !result->producer->is("clone")) continue;
      const PlanSlot& slot = plan.slots[static_cast<std::size_t>(plan.results[i].slot)];
      RC_ASSERT((slot.kind == SlotKind::arena || slot.donated));
      ++counts_.returned_copies;
    }
  }

  void check_eager(const Graph& traced, const Plan& plan) {
    EagerEvaluator eager(context_, kRange);
    const std::vector<Tensor> given = inputs_.copies();
    check_same(tensors(run_graph(traced, eager, values_of(eager, given))), "eager");
    check_inputs(given, plan, "eager");
  }

  void check_same(const std::vector<Tensor>& came, const char* mode) const {
    RC_ASSERT(came.size() == wanted_.size());
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const std::string found = difference(wanted_[i], came[i], {}, true);
      if (!found.empty()) RC_LOG() << mode << " result " << i << ": " << found << "\n";
      RC_ASSERT(found == "");
    }
  }

  // Values that were not donated are unchanged.
  void check_inputs(const std::vector<Tensor>& after, const Plan& plan, const char* mode) {
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (plan.slots[static_cast<std::size_t>(plan.inputs[i])].donated) continue;
      ++counts_.inputs_not_donated;
      const auto bytes = static_cast<std::size_t>(after[i].storage->bytes());
      if (std::memcmp(after[i].storage->data(), inputs_.tensors[i].storage->data(), bytes) != 0)
        RC_FAIL(fmt::format("{} run wrote over input {}, which was not donated", mode, i));
    }
  }

  const Context& context_;
  const Graph& graph_;
  Counts& counts_;
  LayerInputs inputs_;
  std::vector<Tensor> wanted_;
  std::vector<std::string> splitting_;
};

TEST(DonationProperty, EveryPlacementGivesTheSameBitsCompiledEagerAndMeant) {
  Counts counts;
  check_property(1000, [&](const GraphRecipe& recipe) {
    const Context& context = *contexts()[static_cast<std::size_t>(*number_in(0, static_cast<int>(contexts().size())))];
    // Through text, so that nodes have lines.
    const auto graph = parse_graph(display(*build_graph(recipe, context.ops)), context.ops);
    for (const auto& node : graph->nodes()) node->maybe_inplace = false;
    Trial(context, *graph, *number_in(1, 5), counts).run();
  });
  if (HasFailure()) return;
  const GraphFeatures& features = counts.features;
  std::cout << fmt::format(
      "count: placements {}, donated {}, calls of pieces {}, donated inputs that two pieces read {}, inputs not "
      "donated {}, copies inserted {}, removed {}, kept {}, returned {}; refused {}: by name {}, through a view {}, in "
      "another "
      "piece {}, returned {}, twice to one call {}; {}\n",
      counts.placements, counts.donated, counts.pieces, counts.two_pieces_read_a_donated_input,
      counts.inputs_not_donated, counts.inserted, counts.removed, counts.kept, counts.returned_copies, counts.refused,
      counts.by_name, counts.through_view, counts.other_piece, counts.returned, counts.twice, features.text());
  EXPECT_GT(std::min({counts.donated, counts.two_pieces_read_a_donated_input, counts.inserted, counts.removed,
                      counts.kept, counts.returned_copies, counts.by_name, counts.twice}),
            80);
  EXPECT_GT(std::min({counts.through_view, counts.other_piece, counts.returned}), 15);
  EXPECT_GT(std::min({features.views, features.strided_views, features.shared_values, features.several_results,
                      features.returned, features.donated_inputs, features.repeated_nodes}),
            1000);
  EXPECT_GT(counts.placements, 1500);
  EXPECT_GT(counts.pieces, 2 * counts.placements);
}

}  // namespace weft::donation_property_slow_test
