#include "ir/parse.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/graph_cursor.h"
#include "ir/parse_call.h"
#include "ir/pattern_parser.h"
#include "tensor/attribute_parser.h"
#include "tensor/meta_parser.h"

namespace weft {
namespace {

constexpr std::size_t kMaxText = 64u << 20;

class Parser {
 public:
  Parser(std::string_view text, const OpTable& ops, std::string_view source) : cursor_(text, source), ops_(ops) {}

  std::vector<Definition> file() {
    std::vector<Definition> definitions;
    std::vector<std::shared_ptr<Graph>> pieces;
    std::set<std::string> patterns;
    for (cursor_.skip(true); !cursor_.at_end(); cursor_.skip(true)) {
      if (pieces.empty() && cursor_.take_word("pattern")) {
        definitions.emplace_back(parse_pattern(cursor_, ops_));
        const std::string& name = std::get<std::shared_ptr<Pattern>>(definitions.back())->name;
        if (!patterns.insert(name).second) cursor_.fail("a pattern named " + name + " is defined above already");
        continue;
      }
      std::shared_ptr<Graph> graph = definition(pieces);
      if (graph->kind != DefinitionKind::graph) {
        pieces.push_back(std::move(graph));
        continue;
      }
      graph->pieces = std::move(pieces);
      pieces.clear();
      definitions.emplace_back(std::move(graph));
    }
    if (!pieces.empty()) cursor_.fail_expected("the graph that the pieces belong to");
    return definitions;
  }

 private:
  std::shared_ptr<Graph> definition(const std::vector<std::shared_ptr<Graph>>& pieces) {
    auto graph = std::make_shared<Graph>();
    values_.clear();
    symbols_.clear();
    if (cursor_.take_word("graph")) {
      graph->kind = DefinitionKind::graph;
    } else if (cursor_.take_word("piece")) {
      graph->kind = DefinitionKind::piece;
    } else if (cursor_.take_word("splitting")) {
      graph->kind = DefinitionKind::splitting;
    } else {
      cursor_.fail_expected(pieces.empty() ? "'graph', 'piece', 'splitting' or 'pattern'"
                                           : "'piece', 'splitting' or the graph that the pieces belong to");
    }
    graph->name = cursor_.word("a name");
    inputs(*graph);
    header(*graph);
    cursor_.expect("{");
    for (cursor_.skip(true); !cursor_.take_word("return"); cursor_.skip(true)) node(*graph, pieces);
    results(*graph);
    cursor_.expect("}", true);
    return graph;
  }

  void inputs(Graph& graph) {
    cursor_.expect("(");
    if (cursor_.take(")", true)) return;
    do {
      cursor_.skip(true);
      const bool overwrites = cursor_.take_word("overwrites", true);
      const bool donated = cursor_.take_word("donated", true);
      const bool param = cursor_.take_word("param", true);
      std::string key;
      if (param && cursor_.take("(")) {
        if (cursor_.peek() != '"') cursor_.fail_expected("the checkpoint key in quotes");
        key = parse_attribute(cursor_.text(), cursor_.position()).string();
        cursor_.expect(")");
      }
      const std::string name = parse_value_name(cursor_);
      cursor_.expect(":");
      GraphValue* input = graph.add_input(type(graph), name);
      input->overwrites = overwrites;
      input->donated = donated;
      input->param = param;
      input->key = key;
      define(input);
      for (const Dim& dim : input->meta.shape) dim.collect_symbols(symbols_);
    } while (cursor_.take(",", true));
    cursor_.expect(")", true);
  }

  void header(Graph& graph) {
    cursor_.expect("stage");
    cursor_.expect("=");
    const auto stage = stage_from_text(cursor_.word("a stage"));
    if (!stage) cursor_.fail("a stage is one of traced, pure, lowered, split");
    graph.stage = *stage;
    if (cursor_.take_word("device")) {
      cursor_.expect("=");
      graph.device = device();
    }
    if (!cursor_.take_word("where")) return;
    do {
      const std::string symbol = cursor_.word("a symbol");
      cursor_.expect("in");
      cursor_.expect("[");
      Interval interval;
      interval.lo = parse_number(cursor_);
      cursor_.expect(",");
      interval.hi = parse_number(cursor_);
      cursor_.expect("]");
      if (interval.lo > interval.hi) cursor_.fail("the bounds of " + symbol + " are empty");
      if (!graph.bounds.emplace(symbol, interval).second) cursor_.fail("bounds of " + symbol + " are given twice");
    } while (cursor_.take(","));
  }

  void node(Graph& graph, const std::vector<std::shared_ptr<Graph>>& pieces) {
    auto node = std::make_unique<Node>();
    cursor_.skip(true);
    node->line = cursor_.line();
    std::vector<std::string> names;
    std::vector<std::optional<Meta>> types;
    cursor_.skip(false);
    if (cursor_.peek() == '%') {
      do {
        names.push_back(parse_value_name(cursor_));
        types.push_back(cursor_.take(":") ? std::optional(type(graph)) : std::nullopt);
      } while (cursor_.take(",", true));
      cursor_.expect("=");
    }
    if (cursor_.take_word("call")) {
      node->kind = NodeKind::call;
      node->name = cursor_.word("a piece");
    } else {
      op_name(*node);
    }
    arguments(*node);
    const std::string origin = cursor_.take_origin();
    set_origin(*node, origin);
    expect_end_of_node(cursor_);
    std::vector<Meta> metas = result_types(*node, names, types, pieces);
    Node* added = graph.add_node(std::move(node), std::move(metas));
    for (std::size_t i = 0; i < names.size(); ++i) {
      added->results[i]->name = names[i];
      define(added->result(i));
    }
  }

  void op_name(Node& node) {
    node.name = cursor_.word("an op");
    node.op = ops_.find(node.name);
    if (cursor_.peek() == '@') {
      ++cursor_.position();
      node.provider = cursor_.word("a provider");
    }
    while (cursor_.peek() == '.') {
      ++cursor_.position();
      const std::string suffix = cursor_.word("'maybe_inplace' or 'inplace'");
      if (suffix == "maybe_inplace" && node.provider.empty()) {
        node.maybe_inplace = true;
      } else if (suffix == "inplace" && !node.provider.empty()) {
        inplace_ = true;
      } else {
        cursor_.fail("an op is followed by .maybe_inplace, @PROVIDER or @PROVIDER.inplace");
      }
    }
  }

  void arguments(Node& node) {
    NamedAttributes given;
    cursor_.expect("(");
    bool more = !cursor_.take(")", true);
    while (more) {
      cursor_.skip(true);
      const bool written = cursor_.peek() == '&';
      if (written) ++cursor_.position();
      if (cursor_.peek() == '%') {
        if (!given.empty()) cursor_.fail("values must be before attributes");
        if (written) node.writes.push_back(static_cast<int>(node.operands.size()));
        node.operands.push_back(used_value());
      } else if (cursor_.peek_word() == "none" && !written && given.empty()) {
        cursor_.position() += 4;
        node.operands.push_back(nullptr);
      } else {
        named_attribute(node, given);
      }
      more = cursor_.take(",", true);
      if (!more) cursor_.expect(")", true);
    }
    if (inplace_ != !node.writes.empty()) cursor_.fail("'.inplace' needs '&' before each argument that is overwritten");
    inplace_ = false;
    complete(node, given);
  }

  void named_attribute(const Node& node, NamedAttributes& given) {
    const std::string key = cursor_.word("a value, 'none' or an attribute");
    cursor_.expect("=");
    check_attribute_name(cursor_, node.op, node.name, key, given);
    given.emplace_back(key, parse_attribute(cursor_.text(), cursor_.position(), &symbols_));
  }

  void complete(Node& node, const NamedAttributes& given) {
    if (node.op == nullptr) {
      for (const auto& [key, value] : given) node.attributes.set(key, value);
      return;
    }
    complete_operands<GraphValue*>(cursor_, *node.op, node.operands, nullptr);
    located(cursor_, [&] { node.attributes = complete_attributes(node.op->schema, given); });
  }

  std::vector<Meta> result_types(const Node& node, const std::vector<std::string>& names,
                                 const std::vector<std::optional<Meta>>& types,
                                 const std::vector<std::shared_ptr<Graph>>& pieces) {
    std::vector<Meta> metas;
    if (node.op != nullptr) {
      std::vector<std::optional<Meta>> operands;
      for (const GraphValue* operand : node.operands)
        operands.push_back(operand == nullptr ? std::nullopt : std::optional(operand->meta));
      located(cursor_, [&] { metas = infer_results(*node.op, ops_, operands, node.attributes); });
      if (metas.size() != names.size())
        cursor_.fail(fmt::format("[{}] gives {} results, but {} are named", node.name, metas.size(), names.size()));
      for (std::size_t i = 0; i < names.size(); ++i)
        if (types[i] && *types[i] != metas[i])
          cursor_.fail(fmt::format("%{} is stated as {}, but {} gives {}", names[i], types[i]->text(), node.name,
                                   metas[i].text()));
      return metas;
    }
    const bool known_piece =
        node.kind != NodeKind::call ||
        std::any_of(pieces.begin(), pieces.end(), [&](const auto& piece) { return piece->name == node.name; });
    if (!known_piece) cursor_.fail("no piece named " + node.name + " is defined above");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!types[i]) cursor_.fail("the type of %" + names[i] + " must be stated: nothing here infers it");
      metas.push_back(*types[i]);
    }
    return metas;
  }

  void results(Graph& graph) {
    std::vector<GraphValue*> values;
    std::vector<int> homes;
    const int line = cursor_.line();
    cursor_.skip(false);
    while (cursor_.peek() == '%') {
      values.push_back(used_value());
      homes.push_back(-1);
      if (cursor_.take(":")) {
        const Meta stated = type(graph);
        if (stated != values.back()->meta)
          cursor_.fail("%" + values.back()->name + " is " + values.back()->meta.text() + ", not " + stated.text());
        cursor_.expect("in");
        const GraphValue* home = used_value();
        if (home->producer != nullptr)
          cursor_.fail("a result can only be stored in an input, and %" + home->name + " is not one");
        homes.back() = home->index;
      }
      if (!cursor_.take(",")) break;
      cursor_.skip(true);
    }
    graph.set_results(values);
    graph.result_node()->line = line;
    if (std::any_of(homes.begin(), homes.end(), [](int home) { return home >= 0; }))
      graph.result_node()->results_in = std::move(homes);
  }

  Meta type(const Graph& graph) {
    cursor_.skip(true);
    Meta meta;
    located(cursor_, [&] { meta = parse_meta(cursor_.text(), cursor_.position()); });
    meta.device = graph.device;
    if (cursor_.take_word("on")) meta.device = device();
    return meta;
  }

  DeviceId device() {
    std::string text = cursor_.word("a device");
    if (cursor_.peek() == ':' && cursor_.peek(1) >= '0' && cursor_.peek(1) <= '9') {
      ++cursor_.position();
      text += ":" + std::to_string(parse_number(cursor_));
    }
    DeviceId id;
    located(cursor_, [&] { id = device_from_text(text); });
    return id;
  }

  GraphValue* used_value() {
    const std::string name = parse_value_name(cursor_);
    auto found = values_.find(name);
    if (found == values_.end()) cursor_.fail("%" + name + " is used before it is defined");
    return found->second;
  }

  void define(GraphValue* value) {
    if (!values_.emplace(value->name, value).second) cursor_.fail("%" + value->name + " is defined twice");
  }

  static void set_origin(Node& node, const std::string& text) {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t begin = text.find_first_not_of(" \t\r", at);
      if (begin == std::string::npos) return;
      const std::size_t end = std::min(text.find_first_of(" \t\r", begin), text.size());
      const std::string entry = text.substr(begin, end - begin);
      const std::size_t equals = entry.find('=');
      if (equals != std::string::npos) node.origin.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
      at = end;
    }
  }

  GraphCursor cursor_;
  const OpTable& ops_;
  std::map<std::string, GraphValue*> values_;
  std::set<std::string> symbols_;  // of the inputs; in attributes these are dims, other words are enum words
  bool inplace_ = false;
};

}  // namespace

std::vector<Definition> parse_definitions(std::string_view text, const OpTable& ops, std::string_view source) {
  USER_CHECK(text.size() <= kMaxText, "[{}] a graph's text is at most 64 MB, but this is {} bytes", source,
             text.size());
  return Parser(text, ops, source).file();
}

std::vector<std::shared_ptr<Graph>> parse_graphs(std::string_view text, const OpTable& ops, std::string_view source) {
  std::vector<std::shared_ptr<Graph>> graphs;
  for (Definition& definition : parse_definitions(text, ops, source))
    if (auto* graph = std::get_if<std::shared_ptr<Graph>>(&definition)) graphs.push_back(std::move(*graph));
  return graphs;
}

std::shared_ptr<Graph> parse_graph(std::string_view text, const OpTable& ops, std::string_view source) {
  auto graphs = parse_graphs(text, ops, source);
  USER_CHECK(graphs.size() == 1, "[{}] must hold one graph, but holds {}", source, graphs.size());
  return graphs.front();
}

}  // namespace weft
