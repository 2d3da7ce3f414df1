#include "capture/recording.h"

#include <algorithm>

#include "base/error.h"
#include "capture/segment_program.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/all.h"

namespace weft {
namespace {

// Builds one graph from the steps of one or several segments.
class GraphOfSteps {
 public:
  GraphOfSteps(std::span<GraphValue* const> values, const Bounds& bounds, const std::string& name, const OpTable& ops,
               const Numbers& numbers)
      : values_(values), ops_(ops), numbers_(numbers) {
    built.graph = std::make_shared<Graph>(name);
    if (numbers.empty()) built.graph->bounds = bounds;
  }

  void add(const Segment& segment) {
    for (const RecordedStep& step : segment.steps) {
      if (step.op == nullptr) continue;  // it becomes an input at its first use
      std::vector<GraphValue*> operands;
      for (const int operand : step.operands) operands.push_back(operand < 0 ? nullptr : of(operand));
      Attributes attributes = with_numbers(step.attributes, numbers_);
      std::vector<Meta> metas = metas_of(step, operands, attributes);
      Node* node = built.graph->add_op(*step.op, std::move(operands), std::move(attributes), std::move(metas));
      node->maybe_inplace = step.maybe_inplace;
      node->site = step.site;
      for (std::size_t i = 0; i < step.results.size(); ++i) known_[number_of(step.results[i])] = node->result(i);
    }
  }

  GraphValue* of(int number) {
    GraphValue*& known = known_[number];
    if (known == nullptr) {
      const GraphValue& value = *values_[static_cast<std::size_t>(number)];
      known = built.graph->add_input(with_numbers(value.meta, numbers_), value.name);
      known->donated = value.meta.kind == MetaKind::kv;  // the owner continues with the pages that the graph returns
      built.inputs.push_back(number);
    }
    return known;
  }

  void finish(const std::vector<int>& results) {
    std::vector<GraphValue*> returned;
    for (const int number : results) returned.push_back(of(number));
    built.graph->set_results(std::move(returned));
    built.results = results;
    assign_names(*built.graph);
  }

  SegmentGraph built;

 private:
  std::vector<Meta> metas_of(const RecordedStep& step, const std::vector<GraphValue*>& operands,
                             const Attributes& attributes) const {
    std::vector<Meta> metas;
    if (numbers_.empty()) {
      for (const Value& result : step.results) metas.push_back(result.meta());
      return metas;
    }
    std::vector<std::optional<Meta>> given;
    for (const GraphValue* operand : operands)
      given.push_back(operand == nullptr ? std::nullopt : std::optional(operand->meta));
    return infer_results(*step.op, ops_, given, attributes);
  }

  std::span<GraphValue* const> values_;
  const OpTable& ops_;
  const Numbers& numbers_;
  std::map<int, GraphValue*> known_;
};

// Kernels are chosen by widths, and another kernel may give other bits. A width must therefore be a number, as it is
// when ops run one by one.
void check_widths(const Graph& graph) {
  const auto check = [&](const GraphValue& value) {
    for (std::size_t dim = 1; dim < value.meta.shape.size(); ++dim)
      USER_CHECK(value.meta.shape[dim].is_number(),
                 "[{}] only rows may be a symbol, which is dim 0 of what is computed, but dim {} of %{} is {}",
                 graph.name, dim, value.name, value.meta.shape[dim].text());
  };
  for (const auto& input : graph.inputs()) check(*input);
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results) check(*result);
}

}  // namespace

Segment::Segment() = default;
Segment::~Segment() = default;

bool RecordedStep::is_call(const Op& called, const Values& given, bool inplace) const {
  if (op != &called || maybe_inplace != inplace || operands.size() != given.size()) return false;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (operands[i] != number_of(given[i])) return false;
  return true;
}

// Returns whether each given name is an attribute and all other attributes have the defaults of the schema; if so, sets
// `spelling`.
bool RecordedStep::spell(Literal called, const GivenAttributes& given) {
  const NamedAttributes& all = attributes.entries();
  std::vector<GivenAttribute> known;
  std::vector<bool> is_given(all.size());
  for (const GivenAttribute& entry : given) {
    const std::string_view name = entry.name;
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == name; });
    if (at == all.end()) return false;
    known.push_back({entry.name, AttributeView::into(at->second)});
    is_given[static_cast<std::size_t>(at - all.begin())] = true;
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!is_given[i] && (i >= 64 || (defaults >> i & 1) == 0)) return false;
  spelling = Spelling{called, std::move(known)};
  return true;
}

bool RecordedStep::would_have(Literal called, const GivenAttributes& given) {
  if (spelling && spelling->attributes.size() == given.size()) {
    std::size_t same = 0;
    for (; same < given.size() && given[same].name == spelling->attributes[same].name; ++same)
      if (!(given[same].value == spelling->attributes[same].value)) return false;
    if (same == given.size()) return true;
  }
  if (!spell(called, given)) return false;
  return std::equal(given.begin(), given.end(), spelling->attributes.begin(),
                    [](const GivenAttribute& a, const GivenAttribute& b) { return a.value == b.value; });
}

bool Segment::begins_like(const Segment& other, std::size_t count) const {
  if (steps.size() < count || other.steps.size() < count) return false;
  return std::equal(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(count), other.steps.begin(),
                    [](const RecordedStep& a, const RecordedStep& b) {
                      if (a.op == nullptr || b.op == nullptr)
                        return a.op == b.op && a.results[0].meta() == b.results[0].meta();
                      return a.op == b.op && a.operands == b.operands && a.maybe_inplace == b.maybe_inplace &&
                             a.attributes == b.attributes;
                    });
}

Meta with_numbers(const Meta& meta, const Numbers& numbers) {
  Meta changed = meta;
  if (numbers.empty()) return changed;
  for (Dim& dim : changed.shape) dim = dim.substitute(numbers);
  for (Dim& dim : changed.strides) dim = dim.substitute(numbers);
  // Meta::strided() normalizes the strides of dims whose size has become 1.
  if (!changed.strides.empty()) changed.strides = Meta::strided(meta.dtype, changed.shape, changed.strides).strides;
  return changed;
}

Attributes with_numbers(const Attributes& attributes, const Numbers& numbers) {
  Attributes changed = attributes;
  if (!numbers.empty())
    for (const auto& [name, value] : attributes.entries()) changed.set(name, value.substitute(numbers));
  return changed;
}

SegmentGraph graph_of(const Segment& segment, std::span<GraphValue* const> values, const std::vector<int>& results,
                      const Bounds& bounds, const std::string& name, const OpTable& ops, const Numbers& numbers) {
  GraphOfSteps graph(values, bounds, name, ops, numbers);
  graph.add(segment);
  graph.finish(results);
  const auto breach = find_breach(*graph.built.graph, ops);
  USER_CHECK(!breach, "[{}] cannot be compiled for sizes of all its range: {}", name, *breach);
  check_widths(*graph.built.graph);
  return std::move(graph.built);
}

void check_donated(std::span<Segment* const> path, std::span<GraphValue* const> values, const Bounds& bounds,
                   const std::string& name, const Context& context, const Numbers& numbers) {
  GraphOfSteps graph(values, bounds, name, context.ops, numbers);
  for (const Segment* segment : path) graph.add(*segment);
  std::vector<int> returned;
  if (path.back()->end == Segment::End::returned) returned = path.back()->ends_in;
  graph.finish(returned);
  PassContext passes = pass_context(context, token_range(*graph.built.graph, context.options));
  functionalize(*graph.built.graph, passes);
}

}  // namespace weft
