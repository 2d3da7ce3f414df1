#include "ir/verify.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/donation.h"
#include "ir/print.h"

namespace weft {
namespace {

// An exception that does not leave this file; with it each rule is one line.
struct Breach {
  std::string message;
};

template <class... Arguments>
void require(bool condition, const Node& node, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (condition) return;
  std::string where = node.line > 0 ? fmt::format("line {}: ", node.line) : std::string();
  throw Breach{where + fmt::format(format, std::forward<Arguments>(arguments)...) + ": " + display_node(node)};
}

std::optional<std::string> breach_of(const Graph& graph, const OpTable& ops, InferredResults& inferred);

class Verifier {
 public:
  Verifier(const Graph& graph, const OpTable& ops, InferredResults& inferred)
      : graph_(graph), ops_(ops), inferred_(inferred), governing_(graph.governing_symbol()) {}

  void run() {
    for (const auto& input : graph_.inputs()) {
      defined_.insert(input.get());
      collect_symbols_of(*input);
    }
    for (const auto& input : graph_.inputs()) check_input(*input);
    if (symbols_.count(governing_) != 0) rows_ = Dim::symbol(governing_);
    for (const auto& node : graph_.nodes()) {
      check_operands(*node);
      if (node->kind == NodeKind::op) check_op(*node);
      check_stage(*node);
      for (const auto& result : node->results) {
        check_symbols(*node, *result);
        defined_.insert(result.get());
      }
      check_overwritten(*node);
    }
    check_operands(*graph_.result_node());
    check_result_homes();
    if (graph_.stage == Stage::traced) check_donated();
    if (graph_.stage == Stage::lowered || graph_.stage == Stage::split) check_bounds();
    if (graph_.stage == Stage::split) check_pieces();
  }

 private:
  bool is_piece() const { return graph_.kind != DefinitionKind::graph; }

  // A run reads a symbol from a dim that is the symbol alone: align(s0, 128) has many solutions. A piece is part of a
  // graph, which reads the symbols for it.
  void collect_symbols_of(const GraphValue& input) {
    for (const Dim& dim : input.meta.shape) {
      if (is_piece()) dim.collect_symbols(symbols_);
      if (const std::string symbol = dim.symbol_name(); !symbol.empty()) symbols_.insert(symbol);
    }
  }

  void check_input(const GraphValue& input) const {
    if (is_piece()) return;
    std::set<std::string> used;
    for (const Dim& dim : input.meta.shape) dim.collect_symbols(used);
    for (const Dim& dim : input.meta.strides) dim.collect_symbols(used);
    for (const std::string& symbol : used)
      if (!symbols_.contains(symbol))
        throw Breach{fmt::format("{} cannot be read from an input, as none has a dim that is {} alone: %{}: {}", symbol,
                                 symbol, input.name, input.meta.text())};
  }

  void check_symbol(const std::string& symbol, const Node& node) const {
    require(symbols_.contains(symbol), node, "{} cannot be read from an input, as none has a dim that is {} alone",
            symbol, symbol);
  }

  void check_attribute(const Attribute& attribute, const Node& node) const {
    if (const auto* list = std::get_if<AttributeList>(&attribute.storage()))
      for (const Attribute& element : *list) check_attribute(element, node);
    const auto* dim = std::get_if<Dim>(&attribute.storage());
    if (dim == nullptr || dim->is_number()) return;
    std::set<std::string> used;
    dim->collect_symbols(used);
    for (const std::string& symbol : used) check_symbol(symbol, node);
  }

  void check_donated() const {
    try {
      check_donations(graph_);
    } catch (const UserError& error) {
      throw Breach{error.what()};
    }
  }

  void check_operands(const Node& node) const {
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const GraphValue* operand = node.operands[i];
      if (operand == nullptr) continue;
      require(defined_.count(operand) != 0, node, "%{} is used before it is defined", operand->name);
      const Use use{const_cast<Node*>(&node), static_cast<int>(i)};
      require(std::count(operand->uses.begin(), operand->uses.end(), use) == 1, node, "the use list of %{} is wrong",
              operand->name);
    }
  }

  void check_op(const Node& node) const {
    require(node.op != nullptr, node, "[{}] is not an op of this program", node.name);
    if (!is_piece())
      for (const auto& [name, attribute] : node.attributes.entries()) check_attribute(attribute, node);
    try {
      check_results(node, inferred_.of(node, ops_));
    } catch (const UserError& error) {
      require(false, node, "{}", error.what());
    }
  }

  static void check_results(const Node& node, const std::vector<Meta>& inferred) {
    require(inferred.size() == node.results.size(), node, "{} results instead of {}", node.results.size(),
            inferred.size());
    for (std::size_t i = 0; i < inferred.size(); ++i)
      if (!(inferred[i] == node.results[i]->meta))  // formatting each type would cost more than the comparison
        require(false, node, "%{} must be {}", node.results[i]->name, inferred[i].text());
  }

  void check_stage(const Node& node) const {
    switch (graph_.stage) {
      case Stage::traced:
        require(node.kind == NodeKind::op, node, "a call is allowed at stage split only");
        require(!node.maybe_inplace || node.op->allow_inplace, node, "[{}] has no maybe_inplace form", node.name);
        require(node.provider.empty(), node, "a provider is chosen at stage lowered");
        break;
      case Stage::pure:
        require(node.kind == NodeKind::op, node, "a call is allowed at stage split only");
        require(!node.maybe_inplace, node, "stage pure has no maybe_inplace");
        require(node.provider.empty() && node.writes.empty(), node, "a provider is chosen at stage lowered");
        break;
      case Stage::lowered:
        require(node.kind == NodeKind::op, node, "a call is allowed at stage split only");
        require(!node.maybe_inplace, node, "stage lowered has no maybe_inplace");
        require(!node.provider.empty(), node, "no provider was chosen");
        break;
      case Stage::split:
        require(node.kind == NodeKind::call, node, "a split graph holds calls alone");
        break;
    }
  }

  void check_symbols(const Node& node, const GraphValue& value) const {
    if (node.kind == NodeKind::call || !value.meta.is_tensor()) return;
    std::set<std::string> used;
    for (const Dim& dim : value.meta.shape)
      if (!dim.is_number() && !(dim == rows_)) dim.collect_symbols(used);
    for (const std::string& symbol : used) check_symbol(symbol, node);
    if (value.meta.shape.empty() || value.meta.shape[0].is_number() || value.meta.shape[0] == rows_) return;
    const std::string rows = value.meta.shape[0].multiplied_symbol_name();
    require(!rows.empty() && rows == governing_, node, "dim 0 of %{} is {}, but the rows are governed by {}",
            value.name, value.meta.shape[0].text(), governing_.empty() ? "no symbol" : governing_);
  }

  bool is_dead(const GraphValue* value) const {
    if (dead_.empty()) return false;
    const auto of_root = dead_.find(storage_root(value));
    if (of_root == dead_.end()) return false;
    const MemoryLocation location = location_of(value);
    return std::any_of(of_root->second.begin(), of_root->second.end(),
                       [&](const MemoryLocation& dead) { return may_overlap(dead, location); });
  }

  // An overwritten value is dead, and so is each view that overlaps it; the result in the same storage replaces it.
  void check_overwritten(const Node& node) {
    for (const GraphValue* operand : node.operands)
      if (operand != nullptr)
        require(!is_dead(operand), node, "%{} is read after its storage was overwritten", operand->name);
    for (int index : node.writes) {
      const GraphValue* operand = node.operands[static_cast<std::size_t>(index)];
      const auto donation = std::find_if(node.op->donates.begin(), node.op->donates.end(),
                                         [&](const Donation& d) { return d.argument == index; });
      require(donation != node.op->donates.end(), node, "[{}] does not donate argument {}", node.name, index);
      const GraphValue* root = storage_root(operand);
      require(root->producer != nullptr || root->donated || root->overwrites, node,
              "%{} is an input that was not donated, but is overwritten", root->name);
      require(!is_dead(operand), node, "%{} is overwritten twice", operand->name);
      dead_[root].push_back(location_of(operand));
    }
  }

  void check_result_homes() const {
    const Node& node = *graph_.result_node();
    for (const GraphValue* value : node.operands)
      require(!is_dead(value), node, "%{} is returned after its storage was overwritten", value->name);
    // To return pages that the caller keeps would need a copy, and KV pages are never copied. A piece may return its
    // input, because its graph has donated it.
    if (graph_.kind != DefinitionKind::graph) return;
    for (const GraphValue* value : node.operands) {
      if (value->meta.kind != MetaKind::kv) continue;
      const GraphValue* home = home_of(value);
      require(home->producer != nullptr || home->donated, node,
              "the KV pages %{} are stored in %{}, which was not donated", value->name, home->name);
    }
  }

  void check_bounds() const {
    for (const std::string& symbol : symbols_)
      require(graph_.bounds.count(symbol) != 0, *graph_.result_node(), "bounds of {} are missing: where {} in [lo, hi]",
              symbol, symbol);
  }

  void check_pieces() const {
    for (const auto& piece : graph_.pieces) {
      if (piece->stage != Stage::lowered) throw Breach{"piece " + piece->name + " is not at stage lowered"};
      if (auto breach = breach_of(*piece, ops_, inferred_)) throw Breach{"piece " + piece->name + ": " + *breach};
    }
    for (const auto& node : graph_.nodes()) {
      const Graph* piece = graph_.find_piece(node->name);
      require(piece != nullptr, *node, "no piece is named {}", node->name);
      require(piece->inputs().size() == node->operands.size(), *node, "{} takes {} arguments", node->name,
              piece->inputs().size());
      require(piece->results().size() == node->results.size(), *node, "{} gives {} results", node->name,
              piece->results().size());
      for (std::size_t i = 0; i < node->operands.size(); ++i)
        require(node->operands[i] != nullptr && node->operands[i]->meta == piece->inputs()[i]->meta, *node,
                "argument {} must be {}", i, piece->inputs()[i]->meta.text());
      for (std::size_t i = 0; i < node->results.size(); ++i)
        require(node->results[i]->meta == piece->results()[i]->meta, *node, "result {} must be {}", i,
                piece->results()[i]->meta.text());
    }
  }

  const Graph& graph_;
  const OpTable& ops_;
  InferredResults& inferred_;
  std::string governing_;
  Dim rows_;  // the governing symbol, if an input has it
  std::unordered_set<const GraphValue*> defined_;
  std::set<std::string> symbols_;
  std::map<const GraphValue*, std::vector<MemoryLocation>> dead_;  // by root
};

std::optional<std::string> breach_of(const Graph& graph, const OpTable& ops, InferredResults& inferred) {
  try {
    Verifier(graph, ops, inferred).run();
  } catch (const Breach& breach) {
    return breach.message;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_breach(const Graph& graph, const OpTable& ops) {
  InferredResults inferred;
  return breach_of(graph, ops, inferred);
}

void verify_after_pass(const Graph& graph, const OpTable& ops, std::string_view pass, InferredResults& inferred) {
  const auto breach = breach_of(graph, ops, inferred);
  CHECK(!breach, "[{}] left an illegal graph: {}", pass, *breach);
}

void verify_text(const Graph& graph, const OpTable& ops, std::string_view source) {
  const auto breach = find_breach(graph, ops);
  USER_CHECK(!breach, "[{}] graph {} is not legal at stage {}: {}", source, graph.name, stage_text(graph.stage),
             *breach);
}

}  // namespace weft
