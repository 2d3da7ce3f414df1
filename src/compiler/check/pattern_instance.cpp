#include "compiler/check/pattern_instance.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "compiler/run/sample_call.h"
#include "ir/pattern_value.h"
#include "ir/rank_groups.h"
#include "ir/trace.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr std::size_t kMostSamples = 12;
constexpr int kMostTrials = 3'000;
constexpr std::int64_t kMostElements = 1'000'000;  // of a value whose sizes the header states

// Visits the nodes of `before` and gives each wildcard a value at its first use.
class InstanceSearch {
 public:
  InstanceSearch(const Pattern& pattern, const OpTable& ops) : pattern_(pattern), ops_(ops) {
    instance_.values.resize(pattern.wildcards.size());
    instance_.given.resize(pattern.wildcards.size());
    instance_.bound.attributes.resize(pattern.wildcards.size());
  }

  std::vector<PatternInstance> run() {
    if (pattern_.after.nodes.size() == 1 && pattern_.after.nodes[0].op != nullptr)
      for (const SampleCall& call : sample_calls(*pattern_.after.nodes[0].op)) begin_with(call);
    node(0);
    return std::move(found_);
  }

 private:
  // If `after` is one op, takes the values of the wildcards from a sample of that op and searches only for the rest.
  void begin_with(const SampleCall& call) {
    const PatternNode& whole = pattern_.after.nodes[0];
    const PatternInstance nothing = instance_;
    bool fits = true;
    for (std::size_t i = 0; i < whole.operands.size() && i < call.operands.size(); ++i) {
      if (whole.operands[i].wildcard < 0) continue;
      const auto slot = static_cast<std::size_t>(whole.operands[i].wildcard);
      instance_.given[slot] = true;
      instance_.values[slot] = call.operands[i];
      fits = fits && read_type(pattern_.wildcards[slot], call.operands[i]);
    }
    for (const auto& [key, value] : whole.attributes.entries()) {
      const Attribute& sampled = call.attributes.at(key);
      const Dim* dim = std::get_if<Dim>(&value.storage());
      const std::string symbol = dim == nullptr ? "" : dim->symbol_name();
      if (symbol.starts_with('?')) {
        const auto slot = static_cast<std::size_t>(pattern_.index_of(symbol.substr(1)));
        instance_.bound.attributes[slot] = sampled;
        for (const Condition& condition : pattern_.wildcards[slot].conditions) fits = fits && holds(condition, sampled);
      } else {
        fits = fits && value == sampled;
      }
    }
    if (fits) node(0);
    instance_ = nothing;
  }

  bool is_over() const { return found_.size() >= kMostSamples || trials_ >= kMostTrials; }

  void node(std::size_t index) {
    if (is_over()) return;
    if (index == pattern_.before.nodes.size()) {
      found_.push_back(instance_);
      return;
    }
    operand(index, 0);
  }

  void operand(std::size_t index, std::size_t at) {
    const PatternNode& node = pattern_.before.nodes[index];
    if (is_over()) return;
    if (at == node.operands.size()) return attributes(index);
    const int wildcard = node.operands[at].wildcard;
    if (wildcard < 0 || instance_.given[static_cast<std::size_t>(wildcard)]) return operand(index, at + 1);
    const auto slot = static_cast<std::size_t>(wildcard);
    const PatternMatch before = instance_.bound;
    instance_.given[slot] = true;
    for (const Tensor& tensor : fitted(tensors_for(node, at), pattern_.wildcards[slot])) {
      instance_.values[slot] = tensor;
      if (read_type(pattern_.wildcards[slot], tensor)) operand(index, at + 1);
      instance_.bound = before;
    }
    instance_.values[slot] = {};
    instance_.given[slot] = false;
  }

  // Candidates for this operand: first from the samples of the node's own op, then from those of all ops of the
  // pattern.
  std::vector<Tensor> tensors_for(const PatternNode& node, std::size_t at) const {
    std::vector<Tensor> tensors;
    const auto add = [&](const Tensor& tensor) {
      const bool is_new = std::none_of(tensors.begin(), tensors.end(), [&](const Tensor& known) {
        return known.defined() == tensor.defined() && known.meta == tensor.meta;
      });
      if (is_new) tensors.push_back(tensor);
    };
    for (const SampleCall& call : sample_calls(*node.op))
      if (at < call.operands.size() && belongs(call, node, at)) add(call.operands[at]);
    for (const PatternNode& other : pattern_.before.nodes)
      for (const SampleCall& call : sample_calls(*other.op))
        for (const Tensor& tensor : call.operands)
          if (tensor.meta.is_tensor()) add(tensor);
    return tensors;
  }

  // A header may state a dtype, a rank or sizes that no sample has: then the samples' elements are converted to it.
  std::vector<Tensor> fitted(std::vector<Tensor> tensors, const Wildcard& wildcard) const {
    if (!wildcard.type || wildcard.type->kind != MetaKind::tensor) return tensors;
    const auto fits = [&](const Tensor& tensor) {
      PatternMatch bound = instance_.bound;
      return bind_type(pattern_, wildcard, tensor, bound);
    };
    if (std::any_of(tensors.begin(), tensors.end(), fits)) return tensors;
    std::vector<Tensor> converted;
    for (const Tensor& tensor : tensors) {
      if (!tensor.defined() || !tensor.meta.is_tensor() || is_block(tensor.meta.dtype)) continue;
      const Meta meta = stated_meta(tensor.meta, *wildcard.type);
      const bool fills_bytes =
          meta.rank() == 0 || meta.shape.back().number() % dtype_info(meta.dtype).block_elements == 0;
      if (!is_block(meta.dtype) && fills_bytes && element_count(meta.shape).number() <= kMostElements)
        converted.push_back(repeated(tensor, meta));
    }
    return converted;
  }

  static Meta stated_meta(const Meta& own, const PatternType& type) {
    Shape shape = type.shape;
    for (std::size_t i = 1; i <= shape.size(); ++i)
      if (Dim& dim = shape[shape.size() - i]; !dim.is_number())
        dim = i <= own.rank() ? own.shape[own.rank() - i] : Dim(3);
    if (type.open_shape && shape.size() < own.rank())
      shape.insert(shape.begin(), own.shape.begin(), own.shape.end() - static_cast<std::ptrdiff_t>(shape.size()));
    return Meta::tensor(type.dtype_wildcard.empty() ? type.dtype : own.dtype, shape);
  }

  // KV pages and a batch only have a meaning with the other operands of their sample.
  bool belongs(const SampleCall& call, const PatternNode& node, std::size_t at) const {
    if (call.operands[at].meta.is_tensor()) return true;
    for (std::size_t i = 0; i < at; ++i) {
      const int wildcard = node.operands[i].wildcard;
      if (wildcard >= 0 && !(instance_.values[static_cast<std::size_t>(wildcard)].meta == call.operands[i].meta))
        return false;
    }
    return true;
  }

  // Binds the wildcards of the type. The match checks later whether all uses of a wildcard agree.
  bool read_type(const Wildcard& wildcard, const Tensor& tensor) {
    return bind_type(pattern_, wildcard, tensor, instance_.bound);
  }

  void attributes(std::size_t index) {
    for (const auto& [key, value] : pattern_.before.nodes[index].attributes.entries())
      if (const int wildcard = open_wildcard(value); wildcard >= 0) {
        std::optional<Attribute>& bound = instance_.bound.attributes[static_cast<std::size_t>(wildcard)];
        for (const Attribute& candidate :
             candidates(index, key, pattern_.wildcards[static_cast<std::size_t>(wildcard)])) {
          bound = candidate;
          attributes(index);
        }
        bound.reset();
        return;
      }
    infer(index);
  }

  // The first wildcard of the attribute that has no value yet; -1 if all have one.
  int open_wildcard(const Attribute& value) const {
    if (const auto* list = std::get_if<AttributeList>(&value.storage())) {
      for (const Attribute& element : *list)
        if (const int wildcard = open_wildcard(element); wildcard >= 0) return wildcard;
      return -1;
    }
    const Dim* dim = std::get_if<Dim>(&value.storage());
    std::set<std::string> symbols;
    if (dim != nullptr) dim->collect_symbols(symbols);
    for (const std::string& symbol : symbols) {
      const int wildcard = pattern_.index_of(symbol.substr(1));
      if (!instance_.bound.attributes[static_cast<std::size_t>(wildcard)]) return wildcard;
    }
    return -1;
  }

  std::vector<Attribute> candidates(std::size_t index, const std::string& key, const Wildcard& wildcard) const {
    std::vector<Attribute> all;
    const auto add = [&](const Attribute& value) {
      if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
    };
    for (const Condition& condition : wildcard.conditions)
      if (condition.relation == Relation::one_of)
        for (const Attribute& operand : condition.operands) add(operand);
    const PatternNode& node = pattern_.before.nodes[index];
    // Samples use one rank, where every op over ranks is a copy, so other world sizes are added.
    if (is_over_ranks(*node.op) && key == "world_size")
      for (const int ranks : {2, 4}) add(ranks);
    if (std::get_if<AttributeList>(&node.attributes.at(key).storage()) == nullptr)
      for (const Sample& sample : node.op->samples)
        add(complete_attributes(node.op->schema, sample.attributes).at(key));
    if (all.empty() && wildcard.kind != WildcardKind::real)
      for (const int number : {32, 64, 1, 2, 4}) add(number);
    std::erase_if(all, [&](const Attribute& value) {
      return !std::all_of(wildcard.conditions.begin(), wildcard.conditions.end(),
                          [&](const Condition& condition) { return holds(condition, value); });
    });
    return all;
  }

  void infer(std::size_t index) {
    ++trials_;
    const PatternNode& node = pattern_.before.nodes[index];
    std::vector<std::optional<Meta>> metas;
    for (const PatternOperand& operand : node.operands) {
      metas.emplace_back();
      if (operand.wildcard >= 0) {
        const Tensor& tensor = instance_.values[static_cast<std::size_t>(operand.wildcard)];
        if (tensor.defined()) metas.back() = tensor.meta;
      } else if (operand.node >= 0) {
        metas.back() =
            instance_.results[static_cast<std::size_t>(operand.node)].at(static_cast<std::size_t>(operand.result));
      }
      const Parameter& parameter =
          node.op->schema.parameters[std::min(metas.size(), node.op->schema.tensor_count()) - 1];
      if (!metas.back() && !parameter.optional) return;
    }
    try {
      Attributes attributes;
      for (const auto& [key, value] : node.attributes.entries())
        attributes.set(key, instance_.bound.substitute(pattern_, value));
      instance_.results.push_back(infer_results(*node.op, ops_, metas, attributes));
    } catch (const UserError&) {
      return;  // the op does not accept these operands and attributes together
    }
    this->node(index + 1);
    instance_.results.pop_back();
  }

  const Pattern& pattern_;
  const OpTable& ops_;
  PatternInstance instance_;
  std::vector<PatternInstance> found_;
  int trials_ = 0;
};

}  // namespace

Tensor repeated(const Tensor& sample, const Meta& meta) {
  Tensor tensor = Tensor::empty(meta);
  const std::int64_t count = element_count(meta.shape).number();
  const std::int64_t known = element_count(sample.meta.shape).number();
  for (std::int64_t i = 0; i < count && known > 0; ++i)
    store_double(meta.dtype, tensor.data(), i, load_double(sample.meta.dtype, sample.data(), i % known));
  return tensor;
}

bool bind_type(const Pattern& pattern, const Wildcard& wildcard, const Tensor& tensor, PatternMatch& bound) {
  if (!wildcard.type) return true;
  if (!tensor.defined() || tensor.meta.kind != wildcard.type->kind) return false;
  const bool is_stated = wildcard.type->kind == MetaKind::tensor && wildcard.type->dtype_wildcard.empty();
  if (is_stated && tensor.meta.dtype != wildcard.type->dtype) return false;
  bool fits = true;
  const auto bind = [&](const std::string& name, const Attribute& value) {
    const auto slot = static_cast<std::size_t>(pattern.index_of(name));
    if (!bound.attributes[slot]) bound.attributes[slot] = value;
    for (const Condition& condition : pattern.wildcards[slot].conditions) fits = fits && holds(condition, value);
  };
  if (!wildcard.type->dtype_wildcard.empty()) bind(wildcard.type->dtype_wildcard, tensor.meta.dtype);
  const Shape& wanted = wildcard.type->shape;
  if (wanted.size() > tensor.meta.rank()) return false;
  if (!wildcard.type->open_shape && wanted.size() != tensor.meta.rank()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Dim& came = tensor.meta.shape[tensor.meta.rank() - wanted.size() + i];
    if (wanted[i].is_number() && !(wanted[i] == came)) return false;
    if (const std::string symbol = wanted[i].symbol_name(); symbol.starts_with('?')) bind(symbol.substr(1), came);
  }
  return fits;
}

std::vector<PatternInstance> pattern_instances(const Pattern& pattern, const OpTable& ops) {
  return InstanceSearch(pattern, ops).run();
}

std::shared_ptr<Graph> graph_of(const Pattern& pattern, const PatternInstance& instance, const OpTable& ops) {
  auto graph = std::make_shared<Graph>("before", Stage::pure);
  Trace trace(ops, *graph);
  std::vector<Value> inputs(pattern.wildcards.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (instance.values[i].defined()) inputs[i] = trace.input(pattern.wildcards[i].name, instance.values[i].meta);
  std::vector<Values> results;
  const auto value_of = [&](const PatternOperand& place) {
    if (place.wildcard >= 0) return inputs[static_cast<std::size_t>(place.wildcard)];
    return place.node < 0 ? Value()
                          : results[static_cast<std::size_t>(place.node)].at(static_cast<std::size_t>(place.result));
  };
  for (const PatternNode& node : pattern.before.nodes) {
    Values operands;
    for (const PatternOperand& operand : node.operands) operands.push_back(value_of(operand));
    Attributes attributes;
    for (const auto& [key, value] : node.attributes.entries())
      attributes.set(key, instance.bound.substitute(pattern, value));
    results.push_back(trace.evaluate(*node.op, operands, attributes, false));
  }
  Values returned;
  for (const PatternOperand& result : pattern.before.results) returned.push_back(value_of(result));
  trace.finish(returned);
  return graph;
}

}  // namespace weft
