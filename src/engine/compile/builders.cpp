#include "engine/compile/builders.h"

#include "base/error.h"

namespace weft {

ModelBuilder::ModelBuilder(const ModelFacts& facts, const ModelDefinition& model, Weights& weights)
    : Builder(facts), weights_(weights), model_(model) {
  has_separate_head = !facts.config.tie_word_embeddings;
}

WeightRole ModelBuilder::vector_role(const std::string& weight_name) const {
  const ModelWeight& weight = model_.weight(weight_name);
  if (weight.is_less_one_in(facts.config.format)) return WeightRole::one_plus;
  if (weight.is_logarithm_in(facts.config.format)) return WeightRole::minus_exp;
  const bool is_exact = weight.is_exact || !weight.less_one_in.empty() || !weight.logarithm_in.empty();
  return is_exact ? WeightRole::exact : WeightRole::vector;
}

WeightRole ModelBuilder::matrix_role(const std::string& weight_name, int layer) const {
  const bool is_transposed = model_.weight(weight_name, facts.config, layer).is_transposed_in(facts.config.format);
  return is_transposed && !weights_.is_quantized(key(weight_name, layer)) ? WeightRole::transposed : WeightRole::linear;
}

TraceBuilder::TraceBuilder(const ModelFacts& facts, const ModelDefinition& model, Weights& weights, Trace& trace,
                           const Bindings& sizes)
    : ModelBuilder(facts, model, weights), trace_(trace), sizes_(sizes.begin(), sizes.end()) {}

Value TraceBuilder::input(const std::string& name, const Meta& meta) {
  Meta given = meta;
  for (Dim& dim : given.shape) dim = dim.substitute(sizes_);
  return trace_.input(name, std::move(given));
}

Value TraceBuilder::weight(const std::string& name, const std::vector<std::string>& keys, WeightRole role) {
  auto known = known_.find(name);
  if (known != known_.end()) return known->second;
  std::string joined;
  for (const std::string& key : keys) joined += (joined.empty() ? "" : "+") + key;
  params_.push_back({name, keys, role});
  return known_[name] = trace_.param(name, weights_.meta(keys, role), joined);
}

void TraceBuilder::enter_layer(int layer) {
  trace_.set_origin(layer < 0 ? Origin{} : Origin{{"layer", std::to_string(layer)}});
}

Value EagerBuilder::input(const std::string& name, const Meta&) {
  auto found = inputs_.find(name);
  CHECK(found != inputs_.end(), "the step gives no input named {}", name);
  return evaluator_.value(found->second);
}

Value EagerBuilder::weight(const std::string&, const std::vector<std::string>& keys, WeightRole role) {
  return evaluator_.value(weights_.tensor(keys, role));
}

}  // namespace weft
