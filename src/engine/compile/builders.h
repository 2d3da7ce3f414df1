#pragma once

// The two builders that model code runs against: one adds ops to a graph, the other executes them eagerly over tensors.

#include <functional>
#include <map>

#include "compiler/run/eager.h"
#include "engine/weights/weights.h"
#include "ir/trace.h"
#include "models/model.h"

namespace weft {

class ModelBuilder : public Builder {
 public:
  ModelBuilder(const ModelFacts& facts, const ModelDefinition& model, Weights& weights);
  bool can_merge(const std::vector<std::string>& keys) override { return weights_.can_merge(keys); }
  const QuantizationConfig* quantization(const std::vector<std::string>& keys) const override {
    return weights_.quantization(keys);
  }
  std::string order_key(const std::vector<std::string>& keys) const override { return weights_.order_key(keys); }
  bool has_adapter(const std::vector<std::string>& keys) const override { return weights_.has_adapter(keys); }
  std::string key(const std::string& weight_name, int layer = -1) const override {
    return model_.key(weight_name, facts.config, layer);
  }
  bool has(const std::string& weight_name, int layer = -1) const override {
    return model_.has(weight_name, facts.config, layer);
  }
  WeightRole vector_role(const std::string& weight_name) const override;
  WeightRole matrix_role(const std::string& weight_name, int layer) const override;

 protected:
  Weights& weights_;

 private:
  const ModelDefinition& model_;
};

// A param of the traced graph and where its tensor comes from.
struct TracedParam {
  std::string name;
  std::vector<std::string> keys;  // empty: a table of the config's
  WeightRole role = WeightRole::vector;
};

class TraceBuilder : public ModelBuilder {
 public:
  // `sizes`: numbers that replace symbols.
  TraceBuilder(const ModelFacts& facts, const ModelDefinition& model, Weights& weights, Trace& trace,
               const Bindings& sizes = {});

  Value input(const std::string& name, const Meta& meta) override;
  Value donated_input(const std::string& name, const Meta& meta) override { return trace_.donated_input(name, meta); }
  Value weight(const std::string& name, const std::vector<std::string>& keys, WeightRole role) override;
  void enter_layer(int layer) override;

  const std::vector<TracedParam>& params() const { return params_; }

 private:
  Trace& trace_;
  std::map<std::string, Dim> sizes_;
  std::map<std::string, Value> known_;  // by name: a weight used twice is one param
  std::vector<TracedParam> params_;
};

// Receives the input of every linear layer and the names of the layer's weights.
using LinearObserver = std::function<void(const std::vector<std::string>& keys, const Tensor& x)>;

class EagerBuilder : public ModelBuilder {
 public:
  EagerBuilder(const ModelFacts& facts, const ModelDefinition& model, Weights& weights, EagerEvaluator& evaluator,
               std::map<std::string, Tensor> inputs)
      : ModelBuilder(facts, model, weights), evaluator_(evaluator), inputs_(std::move(inputs)) {}

  LinearObserver observer;  // may be empty

  Value input(const std::string& name, const Meta& meta) override;
  Value donated_input(const std::string& name, const Meta& meta) override { return input(name, meta); }
  Value weight(const std::string& name, const std::vector<std::string>& keys, WeightRole role) override;
  void enter_layer(int) override {}
  void linear_input(const std::vector<std::string>& keys, const Value& x) override {
    if (observer) observer(keys, x.tensor());
  }

 private:
  EagerEvaluator& evaluator_;
  std::map<std::string, Tensor> inputs_;
};

}  // namespace weft
