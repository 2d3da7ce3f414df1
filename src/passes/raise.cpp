// raise: nodes that spell out an op's meaning become that op.
//
//   %g = slice(%x, ..)  %u = slice(%x, ..)  %s = silu(%g)  %y = mul(%s, %u)   ->   %y = silu_and_mul(%x)
//
// Fusions and the choice of kernels then see the op, however the graph was written. The pass repeats until nothing
// changes, because meanings contain ops that have meanings. Ops that fusions produce are left to fusions.

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/meta_evaluator.h"
#include "ir/pattern_rewrite.h"
#include "ir/trace.h"
#include "passes/all.h"
#include "passes/equal_spellings.h"
#include "passes/written_quantization.h"

namespace weft {
namespace {

constexpr std::size_t kMostValues = 16;  // that are tried for one attribute

using Operands = std::vector<std::optional<Meta>>;

// Returns a pattern of an op's meaning for these types, after the same clean-up passes as the graph. Returns nothing
// when the meaning has fewer than two nodes or returns an operand.
std::optional<Pattern> written_out(const Op& op, const Operands& operands, const Attributes& attributes,
                                   PassContext& context) {
  Graph graph(op.name, Stage::pure);
  Trace trace(context.ops, graph);
  Pattern pattern{.name = op.name};
  Values values;
  for (const std::optional<Meta>& operand : operands) {
    const std::string name = "v" + std::to_string(pattern.wildcards.size());
    values.push_back(operand ? trace.input(name, *operand) : Value());
    pattern.wildcards.push_back({.name = name});
    if (operand && operand->is_tensor())
      pattern.wildcards.back().type = PatternType{.dtype = operand->dtype, .shape = operand->shape};
  }
  trace.finish(op.meaning(trace, values, attributes));
  noop_elimination(graph, context);
  common_subexpression_elimination(graph, context);
  dead_code_elimination(graph, context);
  spell_alike(graph, context);
  if (graph.nodes().size() < 2) return std::nullopt;
  std::map<const GraphValue*, PatternOperand> places{{nullptr, {}}};
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].present()) places[values[i].graph_value()] = {.wildcard = static_cast<int>(i)};
  for (const auto& node : graph.nodes()) {
    PatternNode copy{.name = node->name, .op = node->op, .attributes = node->attributes};
    for (const GraphValue* operand : node->operands) copy.operands.push_back(places.at(operand));
    for (const auto& result : node->results) {
      copy.results.emplace_back();
      places[result.get()] = {.node = static_cast<int>(pattern.before.nodes.size()), .result = result->index};
    }
    pattern.before.nodes.push_back(std::move(copy));
  }
  for (const GraphValue* result : graph.results()) pattern.before.results.push_back(places.at(result));
  PatternNode whole{.name = op.name, .op = &op, .attributes = attributes};
  for (std::size_t i = 0; i < operands.size(); ++i)
    whole.operands.push_back(operands[i] ? PatternOperand{.wildcard = static_cast<int>(i)} : PatternOperand());
  whole.results.resize(op.schema.results.size());
  for (std::size_t i = 0; i < op.schema.results.size(); ++i)
    pattern.after.results.push_back({.node = 0, .result = static_cast<int>(i)});
  pattern.after.nodes.push_back(std::move(whole));
  const auto is_operand = [](const PatternOperand& result) { return result.node < 0; };
  if (std::any_of(pattern.before.results.begin(), pattern.before.results.end(), is_operand)) return std::nullopt;
  return pattern;
}

// The type of a sample's tensor, without its contents.
Meta meta_of(const SampleTensor& tensor, DType dtype) {
  if (tensor.kind == MetaKind::batch) return Meta::batch();
  if (tensor.kind == MetaKind::kv) return Meta::pages(tensor.kv);
  return Meta::tensor(tensor.dtype.value_or(dtype), Shape(tensor.shape.begin(), tensor.shape.end()));
}

// Reduces a written-out meaning to its ops and their connections, for any types and attributes.
Pattern outline_of(Pattern pattern) {
  for (Wildcard& wildcard : pattern.wildcards) wildcard.type.reset();
  for (PatternNode& node : pattern.before.nodes) node.attributes = {};
  return pattern;
}

// Fusions produce the ops whose meaning is a chain of ops with meanings, with casts and views between them.
bool keeps_from_fusions(const Op& op) { return op.is_primitive() && !op.is_view && op.name != "cast"; }

// Runs a meaning on types until it calls an op that the graph does not contain. Casts, views and constants are not
// checked, because the clean-up may remove them: a cast or a view may change nothing, a constant may have no use.
class Probe : public MetaEvaluator {
 public:
  struct NotThere {};
  Probe(const OpTable& ops, const std::set<std::string>& there) : MetaEvaluator(ops), there_(there) {}

  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool inplace) override {
    const bool may_go = op.name == "cast" || op.is_view || operands.empty();
    if (!may_go && !there_.contains(op.name)) throw NotThere();
    is_left_to_fusions_ = is_left_to_fusions_ && !keeps_from_fusions(op);
    return MetaEvaluator::evaluate(op, operands, attributes, inplace);
  }

  bool is_left_to_fusions() const { return is_left_to_fusions_; }

 private:
  const std::set<std::string>& there_;
  bool is_left_to_fusions_ = true;
};

class Raising {
 public:
  Raising(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    int raised = 0;
    spell_alike(graph_, context_);
    while (const int more = pass_over()) raised += more;
    return raised;
  }

 private:
  int pass_over() {
    std::set<std::string> there;
    bool all_left_to_fusions = true;
    for (const auto& node : graph_.nodes()) {
      there.insert(node->name);
      all_left_to_fusions = all_left_to_fusions && (node->op == nullptr || !keeps_from_fusions(*node->op));
    }
    if (all_left_to_fusions) return 0;
    int raised = 0;
    for (const Pattern& outline : outlines(there))
      for (bool again = true; again;) {
        again = false;
        PatternMatcher matcher(outline);
        const std::string& anchor = outline.before.nodes[static_cast<std::size_t>(matcher.anchor())].name;
        for (const auto& node : graph_.nodes()) {
          if (node->name != anchor) continue;
          const auto match = matcher.match(node.get());
          if (!match) continue;
          const std::optional<Pattern> exact = solve(outline, *match, node.get());
          if (!exact) continue;
          const Pattern* const patterns[] = {&*exact};
          const int more = rewrite_all(graph_, patterns, context_.ops)[0].matched;
          raised += more;
          again = more > 0;
          if (again) break;  // the rewrite changed the list of nodes
        }
      }
    return raised;
  }

  // The outlines of all ops whose meaning uses only ops that are in the graph, one for each form among the op's
  // samples. The largest is first, because a large meaning may contain a small one.
  std::vector<Pattern> outlines(const std::set<std::string>& there) const {
    std::vector<Pattern> all;
    std::set<std::string> seen;
    for (const auto& [name, op] : context_.ops.all()) {
      if (op.is_primitive() || !op.splits_as.empty()) continue;  // ops that contain attention are left to fusions
      for (const Sample& sample : op.samples) {
        // A check in f32 is enough: in other dtypes the meaning differs by casts only.
        if (!may_stand(op, metas_of(op, sample, DType::f32), sample, there)) continue;
        for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
          const std::optional<Pattern> pattern = written_out(op, sample, dtype);
          if (!pattern || !is_there(*pattern, there) || is_left_to_fusions(*pattern)) continue;
          Pattern outline = outline_of(*pattern);
          if (seen.insert(name + display(outline)).second) all.push_back(std::move(outline));
        }
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Pattern& a, const Pattern& b) { return a.before.nodes.size() > b.before.nodes.size(); });
    return all;
  }

  // A cheap check: most graphs do not contain even the first ops of the meaning.
  bool may_stand(const Op& op, const Operands& operands, const Sample& sample,
                 const std::set<std::string>& there) const {
    Probe probe(context_.ops, there);
    Values values;
    for (const std::optional<Meta>& operand : operands)
      values.push_back(operand ? Value::of_meta(probe, *operand) : Value());
    try {
      op.meaning(probe, values, complete_attributes(op.schema, sample.attributes));
      return !probe.is_left_to_fusions();
    } catch (const Probe::NotThere&) {
      return false;
    }
  }

  static bool is_there(const Pattern& pattern, const std::set<std::string>& there) {
    return std::all_of(pattern.before.nodes.begin(), pattern.before.nodes.end(),
                       [&](const PatternNode& node) { return there.contains(node.name); });
  }

  static bool is_left_to_fusions(const Pattern& pattern) {
    const std::vector<PatternNode>& nodes = pattern.before.nodes;
    return std::none_of(nodes.begin(), nodes.end(),
                        [](const PatternNode& node) { return keeps_from_fusions(*node.op); });
  }

  std::optional<Pattern> written_out(const Op& op, const Sample& sample, DType dtype) const {
    return weft::written_out(op, metas_of(op, sample, dtype), complete_attributes(op.schema, sample.attributes),
                             context_);
  }

  static Operands metas_of(const Op& op, const Sample& sample, DType dtype) {
    Operands metas;
    for (std::size_t i = 0; i < op.schema.tensor_count(); ++i) {
      const std::size_t before = metas.size();
      for (const SampleTensor& tensor : sample.tensors)
        if (tensor.name == op.schema.parameters[i].name) metas.push_back(meta_of(tensor, dtype));
      if (metas.size() == before && op.schema.parameters[i].type != ParameterType::tensor_list) metas.emplace_back();
    }
    return metas;
  }

  // The written-out meaning of an op with some attributes, and how many of its nodes equal the matched ones.
  struct Trial {
    Pattern exact;
    std::size_t equal = 0;
  };

  // Finds attributes with which the op's meaning equals the matched nodes, and returns that exact pattern. The search
  // starts from the attributes of the sample, whose meaning has the same outline. It changes one attribute at a time,
  // as long as more nodes become equal.
  std::optional<Pattern> solve(const Pattern& outline, const PatternMatch& match, Node* anchor) {
    const Op& op = *outline.after.nodes[0].op;
    Attributes best = outline.after.nodes[0].attributes;
    std::optional<Trial> trial = try_with(op, best, match);
    for (bool better = true; better && !(trial && trial->equal == match.nodes.size());) {
      better = false;
      for (std::size_t i = op.schema.tensor_count(); i < op.schema.parameters.size(); ++i)
        for (const Attribute& value : values_for(op, op.schema.parameters[i], match)) {
          Attributes changed = best;
          changed.set(op.schema.parameters[i].name, value);
          std::optional<Trial> other = try_with(op, changed, match);
          if (!other || (trial && other->equal <= trial->equal)) continue;
          trial = std::move(other);
          best = std::move(changed);
          better = true;
        }
    }
    if (!trial) return std::nullopt;
    const auto found = PatternMatcher(trial->exact).match(anchor);
    if (!found || found->values != match.values) return std::nullopt;
    return std::move(trial->exact);
  }

  // Returns nothing when the op refuses the attributes or its meaning then has another outline.
  std::optional<Trial> try_with(const Op& op, const Attributes& attributes, const PatternMatch& match) {
    Operands operands;
    for (const GraphValue* value : match.values)
      operands.push_back(value == nullptr ? std::nullopt : std::optional(value->meta));
    std::optional<Pattern> exact;
    try {
      infer_results(op, context_.ops, operands, attributes);
      exact = weft::written_out(op, operands, attributes, context_);
    } catch (const UserError&) {
      return std::nullopt;
    }
    if (!exact || exact->before.nodes.size() != match.nodes.size()) return std::nullopt;
    Trial trial{.exact = std::move(*exact)};
    for (std::size_t i = 0; i < match.nodes.size(); ++i) {
      const PatternNode& node = trial.exact.before.nodes[i];
      if (node.name != match.nodes[i]->name) return std::nullopt;
      trial.equal += node.attributes == match.nodes[i]->attributes ? 1 : 0;
    }
    return trial;
  }

  // The candidates for an attribute: its default, the values in samples, and the values in the matched nodes.
  std::vector<Attribute> values_for(const Op& op, const Parameter& parameter, const PatternMatch& match) const {
    std::vector<Attribute> values;
    const auto add = [&](const Attribute& value) {
      if (values.size() >= kMostValues) return;
      try {
        const Attribute fitted = conform(value, parameter, op.name);
        if (std::find(values.begin(), values.end(), fitted) == values.end()) values.push_back(fitted);
      } catch (const UserError&) {
        // The value has another kind.
      }
    };
    if (parameter.default_value) add(*parameter.default_value);
    if (parameter.type == ParameterType::boolean)
      for (const bool value : {true, false}) add(value);
    for (const Sample& sample : op.samples)
      if (const auto given = std::find_if(sample.attributes.begin(), sample.attributes.end(),
                                          [&](const auto& entry) { return entry.first == parameter.name; });
          given != sample.attributes.end() && parameter.type == ParameterType::string)
        add(given->second);
    for (const Node* node : match.nodes)
      for (const auto& [key, value] : node->attributes.entries()) {
        add(value);
        if (const auto* list = std::get_if<AttributeList>(&value.storage()))
          for (const Attribute& element : *list) add(element);
      }
    if (values.empty()) values.emplace_back();
    return values;
  }

  Graph& graph_;
  PassContext& context_;
};

}  // namespace

PassResult raise(Graph& graph, PassContext& context) {
  Raising raising(graph, context);
  PassResult result{.counts = {{"raised", raising.run()}}};
  result.patterns = near_quantizations(graph, context.ops);
  return result;
}

}  // namespace weft
