#include "ir/print.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "ir/print_call.h"

namespace weft {
namespace {

using Names = std::map<const GraphValue*, std::string>;

Names display_names(const Graph& graph) {
  Names names;
  std::set<std::string> taken;
  auto keep = [&](const GraphValue& value) {
    if (!value.name.empty() && taken.insert(value.name).second) names[&value] = value.name;
  };
  for (const auto& input : graph.inputs()) keep(*input);
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) keep(*result);
  std::map<std::string, int> next;
  auto make = [&](const GraphValue& value, const std::string& stem) {
    if (names.count(&value) != 0) return;
    std::string name;
    do name = stem + "_" + std::to_string(next[stem]++);
    while (!taken.insert(name).second);
    names[&value] = name;
  };
  for (const auto& input : graph.inputs()) make(*input, "input");
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) make(*result, node->name);
  return names;
}

Names canonical_names(const Graph& graph) {
  Names names;
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
      out += "  " + node_text(*node);
      if (!canonical_) out += origin(*node);
      out += "\n";
    }
    return out + "  return" + results() + "\n}\n";
  }

  std::string node_text(const Node& node) {
    std::string out;
    for (std::size_t i = 0; i < node.results.size(); ++i)
      out += (i > 0 ? ", %" : "%") + name_of(*node.results[i]) + ": " + type_of(*node.results[i]);
    if (!node.results.empty()) out += " = ";
    if (node.kind == NodeKind::call) {
      auto found = piece_names_.find(node.name);
      out += "call " + (found == piece_names_.end() ? node.name : found->second);
    } else {
      out += node.name;
      if (node.maybe_inplace) out += ".maybe_inplace";
      if (!node.provider.empty()) out += "@" + node.provider;
      if (!node.writes.empty()) out += ".inplace";
    }
    return out + "(" + arguments(node) + ")";
  }

 private:
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

  std::string name_of(const GraphValue& value) const {
    auto found = names_.find(&value);
    return found == names_.end() ? value.name : found->second;
  }

  std::string type_of(const GraphValue& value) const {
    std::string text = value.meta.text();
    if (value.meta.device != graph_.device) text += " on " + device_text(value.meta.device);
    return text;
  }

  std::string input_text(const GraphValue& input) const {
    std::string out;
    if (input.overwrites) out += "overwrites ";
    if (input.donated) out += "donated ";
    if (input.param) out += "param";
    if (input.param && !canonical_ && !input.key.empty()) out += "(" + Attribute(input.key).text() + ")";
    if (input.param) out += " ";
    return out + "%" + name_of(input) + ": " + type_of(input);
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

  static std::string origin(const Node& node) {
    std::string out;
    for (const auto& [key, value] : node.origin) out += (out.empty() ? "  #@ " : " ") + key + "=" + value;
    return out;
  }

  std::string arguments(const Node& node) {
    std::vector<bool> present;
    for (const GraphValue* operand : node.operands) present.push_back(operand != nullptr);
    std::vector<std::string> texts;
    const std::size_t shown = shown_operands(node.op, present);
    for (std::size_t i = 0; i < shown; ++i) {
      const bool written = std::find(node.writes.begin(), node.writes.end(), static_cast<int>(i)) != node.writes.end();
      texts.push_back((written ? "&" : "") + (present[i] ? "%" + name_of(*node.operands[i]) : "none"));
    }
    for (std::string& text : attribute_texts(node.op, node.attributes)) texts.push_back(std::move(text));
    return joined(texts);
  }

  std::string results() const {
    std::string out;
    const Node& node = *graph_.result_node();
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      out += (i > 0 ? ", %" : " %") + name_of(*node.operands[i]);
      if (i < node.results_in.size() && node.results_in[i] >= 0)
        out += ": " + type_of(*node.operands[i]) + " in %" +
               name_of(*graph_.inputs()[static_cast<std::size_t>(node.results_in[i])]);
    }
    return out;
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

// Values by their position: inputs, then results of nodes in order.
std::unordered_map<const GraphValue*, std::size_t> positions_of(const Graph& graph) {
  std::unordered_map<const GraphValue*, std::size_t> positions{{nullptr, SIZE_MAX}};
  for (const auto& input : graph.inputs()) positions.emplace(input.get(), positions.size());
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) positions.emplace(result.get(), positions.size());
  return positions;
}

bool are_alike(const Node& a, const Node& b) {
  return a.kind == b.kind && a.op == b.op && a.name == b.name && a.maybe_inplace == b.maybe_inplace &&
         a.provider == b.provider && a.writes == b.writes && a.results_in == b.results_in &&
         a.operands.size() == b.operands.size() &&
         std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(),
                    [](const auto& left, const auto& right) { return left->meta == right->meta; }) &&
         a.attributes == b.attributes;
}

}  // namespace

bool has_equal_nodes(const Graph& a, const Graph& b) {
  CHECK(a.pieces.empty() && b.pieces.empty(), "graph {} holds calls", a.name);
  const auto input_is_alike = [](const auto& left, const auto& right) {
    return left->overwrites == right->overwrites && left->donated == right->donated && left->param == right->param &&
           left->meta == right->meta;
  };
  if (a.kind != b.kind || a.stage != b.stage || a.device != b.device || a.nodes().size() != b.nodes().size() ||
      !are_alike(*a.result_node(), *b.result_node()) ||
      !std::equal(a.inputs().begin(), a.inputs().end(), b.inputs().begin(), b.inputs().end(), input_is_alike) ||
      !std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(),
                  [](const auto& left, const auto& right) { return are_alike(*left, *right); }))
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

ContentHash structural_hash(const Graph& graph) { return hash_bytes(canonical(graph)); }

void assign_names(Graph& graph) {
  Names names = display_names(graph);
  for (const auto& input : graph.inputs()) input->name = names.at(input.get());
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) result->name = names.at(result.get());
}

}  // namespace weft
