#include "ir/print.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "ir/print_call.h"

namespace weft {
namespace {

using Names = std::unordered_map<const GraphValue*, std::string>;

Names display_names(const Graph& graph) {
  const std::size_t most = graph.inputs().size() + 2 * graph.nodes().size();
  Names names(most);
  std::unordered_set<std::string_view> taken(most);  // views of strings in `names` or the graph, which do not move
  auto keep = [&](const GraphValue& value) {
    if (!value.name.empty() && taken.insert(value.name).second) names.emplace(&value, value.name);
  };
  for (const auto& input : graph.inputs()) keep(*input);
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) keep(*result);
  std::unordered_map<std::string_view, int> next;
  auto make = [&](const GraphValue& value, std::string_view stem) {
    const auto [entry, is_new] = names.try_emplace(&value);
    if (!is_new) return;
    std::string& name = entry->second;
    int& number = next[stem];
    do name.assign(stem).append("_").append(std::to_string(number++));
    while (taken.count(name) != 0);
    taken.insert(name);
  };
  for (const auto& input : graph.inputs()) make(*input, "input");
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) make(*result, node->name);
  return names;
}

Names canonical_names(const Graph& graph) {
  Names names(graph.inputs().size() + 2 * graph.nodes().size());
  for (const auto& input : graph.inputs()) names[input.get()] = std::to_string(names.size());
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) names[result.get()] = std::to_string(names.size());
  return names;
}

class Printer {
 public:
  Printer(const Graph& graph, bool canonical)
      : graph_(graph), canonical_(canonical), names_(canonical ? canonical_names(graph) : display_names(graph)) {}

  std::string text() {
    std::string out;
    for (const auto& piece : graph_.pieces) {
      out += canonical_ ? Printer(*piece, true).definition(next_piece_name(piece->name)) : display(*piece);
      out += "\n";
    }
    return out + definition(canonical_ ? "g" : graph_.name);
  }

  std::string definition(const std::string& name) {
    std::string out =
        std::string(kind_text()) + " " + name + inputs() + " stage=" + std::string(stage_text(graph_.stage));
    if (graph_.device != DeviceId{}) out += " device=" + device_text(graph_.device);
    if (!canonical_) out += where();
    out += " {\n";
    for (const auto& node : graph_.nodes()) {
      out += "  ";
      add_node(out, *node);
      if (!canonical_) add_origin(out, *node);
      out += "\n";
    }
    out += "  return";
    add_results(out);
    out += "\n}\n";
    return out;
  }

  std::string node_text(const Node& node) {
    std::string out;
    add_node(out, node);
    return out;
  }

 private:
  void add_node(std::string& out, const Node& node) {
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      out.append(i > 0 ? ", %" : "%").append(name_of(*node.results[i])).append(": ");
      add_type(out, *node.results[i]);
    }
    if (!node.results.empty()) out += " = ";
    if (node.kind == NodeKind::call) {
      auto found = piece_names_.find(node.name);
      out.append("call ").append(found == piece_names_.end() ? node.name : found->second);
    } else {
      out += node.name;
      if (node.maybe_inplace) out += ".maybe_inplace";
      if (!node.provider.empty()) out.append("@").append(node.provider);
      if (!node.writes.empty()) out += ".inplace";
    }
    add_arguments(out, node);
  }

  std::string_view kind_text() const {
    switch (graph_.kind) {
      case DefinitionKind::piece:
        return "piece";
      case DefinitionKind::splitting:
        return "splitting";
      default:
        return "graph";
    }
  }

  std::string next_piece_name(const std::string& name) {
    std::string canonical_name = "p" + std::to_string(piece_names_.size());
    piece_names_[name] = canonical_name;
    return canonical_name;
  }

  const std::string& name_of(const GraphValue& value) const {
    auto found = names_.find(&value);
    return found == names_.end() ? value.name : found->second;
  }

  void add_type(std::string& out, const GraphValue& value) const {
    out += value.meta.text();
    if (value.meta.device != graph_.device) out += " on " + device_text(value.meta.device);
  }

  std::string input_text(const GraphValue& input) const {
    std::string out;
    if (input.overwrites) out += "overwrites ";
    if (input.donated) out += "donated ";
    if (input.param) out += "param";
    if (input.param && !canonical_ && !input.key.empty()) out += "(" + Attribute(input.key).text() + ")";
    if (input.param) out += " ";
    out.append("%").append(name_of(input)).append(": ");
    add_type(out, input);
    return out;
  }

  std::string inputs() const {
    std::vector<std::string> texts;
    for (const auto& input : graph_.inputs()) texts.push_back(input_text(*input));
    return bracketed(texts);
  }

  std::string where() const {
    std::string out;
    for (const auto& [symbol, interval] : graph_.bounds)
      out += (out.empty() ? " where " : ", ") + symbol + " in [" + std::to_string(interval.lo) + ", " +
             std::to_string(interval.hi) + "]";
    return out;
  }

  static void add_origin(std::string& out, const Node& node) {
    const char* before = "  #@ ";
    for (const auto& [key, value] : node.origin) {
      out.append(before).append(key).append("=").append(value);
      before = " ";
    }
  }

  void add_arguments(std::string& out, const Node& node) const {
    std::vector<bool> present;
    present.reserve(node.operands.size());
    for (const GraphValue* operand : node.operands) present.push_back(operand != nullptr);
    const std::size_t shown = shown_operands(node.op, present);
    const char* before = "(";
    for (std::size_t i = 0; i < shown; ++i) {
      out += std::exchange(before, ", ");
      if (std::find(node.writes.begin(), node.writes.end(), static_cast<int>(i)) != node.writes.end()) out += "&";
      out.append(present[i] ? "%" : "none");
      if (present[i]) out += name_of(*node.operands[i]);
    }
    for (const std::string& text : attribute_texts(node.op, node.attributes))
      out.append(std::exchange(before, ", ")).append(text);
    out += *before == '(' ? "()" : ")";
  }

  void add_results(std::string& out) const {
    const Node& node = *graph_.result_node();
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      out.append(i > 0 ? ", %" : " %").append(name_of(*node.operands[i]));
      if (i >= node.results_in.size() || node.results_in[i] < 0) continue;
      out += ": ";
      add_type(out, *node.operands[i]);
      out.append(" in %").append(name_of(*graph_.inputs()[static_cast<std::size_t>(node.results_in[i])]));
    }
  }

  const Graph& graph_;
  bool canonical_;
  Names names_;
  std::map<std::string, std::string> piece_names_;
};

}  // namespace

std::string display(const Graph& graph) { return Printer(graph, false).text(); }

std::string canonical(const Graph& graph) { return Printer(graph, true).text(); }

std::string display_node(const Node& node) {
  const Graph nowhere;
  return Printer(nowhere, false).node_text(node);
}

bool structurally_equal(const Graph& a, const Graph& b) { return canonical(a) == canonical(b); }

namespace {

// The position of each value: inputs first, then the results of the nodes in order.
std::unordered_map<const GraphValue*, std::size_t> positions_of(const Graph& graph) {
  std::unordered_map<const GraphValue*, std::size_t> positions{{nullptr, SIZE_MAX}};
  for (const auto& input : graph.inputs()) positions.emplace(input.get(), positions.size());
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) positions.emplace(result.get(), positions.size());
  return positions;
}

using AttributesEqual = bool (*)(const Node& a, const Node& b);

bool attributes_are_equal(const Node& a, const Node& b) { return a.attributes == b.attributes; }

// Both nodes have the same op, so their attributes are in the same order, that of its parameters.
bool attributes_are_equal_but_for_scalars(const Node& a, const Node& b) {
  const auto is_number = [](const Attribute& value) { return std::holds_alternative<double>(value.storage()); };
  const auto is_liftable = [&](const std::string& name) {
    const int index = a.op->schema.parameter_index(name);
    return index >= 0 && a.op->schema.parameters[static_cast<std::size_t>(index)].is_liftable;
  };
  const auto is_equal = [&](const auto& left, const auto& right) {
    return left == right || (left.first == right.first && is_number(left.second) && is_number(right.second) &&
                             a.op != nullptr && is_liftable(left.first));
  };
  const NamedAttributes &of_a = a.attributes.entries(), &of_b = b.attributes.entries();
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), is_equal);
}

bool are_alike(const Node& a, const Node& b, AttributesEqual attributes_equal) {
  return a.kind == b.kind && a.op == b.op && a.name == b.name && a.maybe_inplace == b.maybe_inplace &&
         a.provider == b.provider && a.writes == b.writes && a.results_in == b.results_in &&
         a.operands.size() == b.operands.size() &&
         std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(),
                    [](const auto& left, const auto& right) { return left->meta == right->meta; }) &&
         attributes_equal(a, b);
}

bool has_equal_nodes(const Graph& a, const Graph& b, AttributesEqual attributes_equal) {
  CHECK(a.pieces.empty() && b.pieces.empty(), "graph {} holds calls", a.name);
  const auto input_is_alike = [](const auto& left, const auto& right) {
    return left->overwrites == right->overwrites && left->donated == right->donated && left->param == right->param &&
           left->meta == right->meta;
  };
  if (a.kind != b.kind || a.stage != b.stage || a.device != b.device || a.nodes().size() != b.nodes().size() ||
      !are_alike(*a.result_node(), *b.result_node(), attributes_equal) ||
      !std::equal(a.inputs().begin(), a.inputs().end(), b.inputs().begin(), b.inputs().end(), input_is_alike) ||
      !std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(),
                  [&](const auto& left, const auto& right) { return are_alike(*left, *right, attributes_equal); }))
    return false;
  const auto of_a = positions_of(a), of_b = positions_of(b);
  const auto operands_are_alike = [&](const Node& left, const Node& right) {
    return std::equal(left.operands.begin(), left.operands.end(), right.operands.begin(),
                      [&](const GraphValue* x, const GraphValue* y) { return of_a.at(x) == of_b.at(y); });
  };
  return operands_are_alike(*a.result_node(), *b.result_node()) &&
         std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(),
                    [&](const auto& left, const auto& right) { return operands_are_alike(*left, *right); });
}

}  // namespace

bool has_equal_nodes(const Graph& a, const Graph& b) { return has_equal_nodes(a, b, attributes_are_equal); }

bool has_equal_nodes_but_for_scalars(const Graph& a, const Graph& b) {
  return has_equal_nodes(a, b, attributes_are_equal_but_for_scalars);
}

ContentHash structural_hash(const Graph& graph) { return hash_bytes(canonical(graph)); }

void assign_names(Graph& graph) {
  Names names = display_names(graph);
  for (const auto& input : graph.inputs()) input->name = names.at(input.get());
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) result->name = names.at(result.get());
}

}  // namespace weft
