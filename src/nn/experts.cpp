#include "nn/experts.h"

#include <utility>

#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "ops/add.h"
#include "ops/add_scalar.h"
#include "ops/div.h"
#include "ops/index_select.h"
#include "ops/linear.h"
#include "ops/moe_sort.h"
#include "ops/moe_unpermute.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reshape.h"
#include "ops/sigmoid.h"
#include "ops/softmax.h"
#include "ops/sum.h"
#include "ops/take_along_dim.h"
#include "ops/topk.h"
#include "ops/topk_softmax.h"

namespace weft::nn {
namespace {

// Logits are f32 whatever the dtype of the stream: rounding them would change which experts are chosen.
Value router_logits(Builder& builder, const Value& x, int layer) {
  const std::string name = "ffn_gate_inp", suffix = layer_suffix(layer);
  const std::vector<std::string> keys{builder.key(name, layer)};
  builder.linear_input(keys, x);
  const Value bias =
      builder.has(name + ".bias", layer)
          ? builder.weight(name + ".bias" + suffix, {builder.key(name + ".bias", layer)}, WeightRole::exact)
          : Value();
  return weft::linear(in_dtype(x, DType::f32), builder.weight(name + suffix, keys, WeightRole::linear), bias);
}

// Weights and numbers of the chosen experts.
struct Choice {
  Value weights, experts;
};

Choice choose_by_sigmoid(Builder& builder, const Value& logits, int layer) {
  const ExpertConfig& c = *builder.facts.config.experts;
  const Value scores = sigmoid(logits);
  Value ranked = scores;
  if (builder.has("exp_probs_b", layer))
    ranked = add(scores, builder.weight("exp_probs_b" + layer_suffix(layer), {builder.key("exp_probs_b", layer)},
                                        WeightRole::exact));
  const Value experts =
      topk(ranked, c.used, c.groups, c.used_groups, c.groups == 1 ? 1 : ExpertConfig::kBestOfGroup).second;
  Value weights = take_along_dim(scores, experts);
  constexpr double kLeast = 1e-20;  // as in the published code, against a division by zero
  if (c.normalizes) weights = div(weights, add_scalar(sum(weights), kLeast));
  return {weights, experts};
}

Choice choose_by_softmax(const ExpertConfig& c, const Value& logits) {
  if (c.groups == 1) {
    auto [weights, experts] = topk_softmax(logits, c.used, c.normalizes);
    return {std::move(weights), std::move(experts)};
  }
  auto [weights, experts] = topk(softmax(logits), c.used, c.groups, c.used_groups);
  return {c.normalizes ? div(weights, sum(weights)) : weights, experts};
}

constexpr const char* kExpertScales = "ffn_down_exps.scale";

// The scales of the chosen experts.
Value scales_of(Builder& builder, const Value& experts, int layer) {
  const Value scales =
      builder.weight(kExpertScales + layer_suffix(layer), {builder.key(kExpertScales, layer)}, WeightRole::exact);
  const Dim tokens = experts.dim(0), used = experts.dim(1);
  return reshape(index_select(scales, reshape(experts, {tokens * used})), {tokens, used});
}

Choice choose_experts(Builder& builder, const Value& logits, int layer) {
  const ExpertConfig& c = *builder.facts.config.experts;
  Choice choice;
  if (c.scores == ExpertScores::sigmoid) {
    choice = choose_by_sigmoid(builder, logits, layer);
  } else if (c.scores == ExpertScores::softmax) {
    choice = choose_by_softmax(c, logits);
  } else {
    auto [chosen, experts] = topk(logits, c.used);
    choice = {softmax(chosen), experts};
  }
  if (c.scale != 1) choice.weights = mul_scalar(choice.weights, c.scale);
  if (builder.has(kExpertScales, layer))
    choice.weights = mul(choice.weights, scales_of(builder, choice.experts, layer));
  return choice;
}

// The expert that computes all tokens; a gate of its own may scale its result.
Value shared_expert(Builder& builder, const Value& x, const GateFunction& gate, int layer) {
  const Value gate_up = merged_linear(builder, x, "gate_up_shexp", {"ffn_gate_shexp", "ffn_up_shexp"}, layer);
  const Value result = linear(builder, gate(gate_up), "ffn_down_shexp", layer);
  if (!builder.has("ffn_gate_inp_shexp", layer)) return result;
  return mul(result, sigmoid(linear(builder, x, "ffn_gate_inp_shexp", layer)));
}

}  // namespace

Value routed_feed_forward(Builder& builder, const Value& x, const GateFunction& gate, int layer) {
  return routed_feed_forward(builder, x, x, gate, layer);
}

Value routed_feed_forward(Builder& builder, const Value& x, const Value& router_input, const GateFunction& gate,
                          int layer) {
  const Choice choice = choose_experts(builder, router_logits(builder, router_input, layer), layer);
  const auto [tokens, experts, positions] = moe_sort(choice.experts);
  const ExpertRows rows{x, tokens, experts};
  const Value gate_up = builder.has("ffn_gate_up_exps", layer)
                            ? expert_linear(builder, rows, "ffn_gate_up_exps", {"ffn_gate_up_exps"}, layer)
                            : expert_linear(builder, rows, "gate_up_exps", {"ffn_gate_exps", "ffn_up_exps"}, layer);
  const Value computed =
      expert_linear(builder, {gate(gate_up), {}, experts}, "ffn_down_exps", {"ffn_down_exps"}, layer);
  const Value result = moe_unpermute(computed, choice.weights, positions);
  const bool has_shared = builder.facts.config.experts->shared_width > 0;
  return has_shared ? add(result, shared_expert(builder, x, gate, layer)) : result;
}

}  // namespace weft::nn
