#include "nn/experts.h"

#include <cmath>
#include <limits>
#include <utility>

#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "ops/abs.h"
#include "ops/add.h"
#include "ops/add_scalar.h"
#include "ops/clamp.h"
#include "ops/concat.h"
#include "ops/div.h"
#include "ops/exp.h"
#include "ops/index_select.h"
#include "ops/linear.h"
#include "ops/maximum.h"
#include "ops/moe_sort.h"
#include "ops/moe_unpermute.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/neg.h"
#include "ops/reciprocal.h"
#include "ops/reshape.h"
#include "ops/sigmoid.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/sub.h"
#include "ops/sum.h"
#include "ops/take_along_dim.h"
#include "ops/topk.h"
#include "ops/topk_softmax.h"
#include "ops/where_at_most.h"

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

constexpr const char* kBias = "exp_probs_b";

// The scores plus the bias that counts for the choice alone. Some folders have it as a matrix of one row.
Value with_bias(Builder& builder, const Value& scores, int layer) {
  const Value bias = builder.weight(kBias + layer_suffix(layer), {builder.key(kBias, layer)}, WeightRole::exact);
  return add(scores, bias.rank() == 1 ? bias : reshape(bias, {builder.facts.config.experts->count}));
}

Choice choose_by_sigmoid(Builder& builder, const Value& logits, int layer) {
  const ExpertConfig& c = *builder.facts.config.experts;
  const Value scores = sigmoid(logits);
  const Value ranked = builder.has(kBias, layer) ? with_bias(builder, scores, layer) : scores;
  const Value experts =
      topk(ranked, c.used, c.groups, c.used_groups, c.groups == 1 ? 1 : ExpertConfig::kBestOfGroup).second;
  Value weights = take_along_dim(scores, experts);
  constexpr double kLeast = 1e-20;  // as in the published code, against a division by zero
  if (c.normalizes) weights = div(weights, add_scalar(sum(weights), kLeast));
  return {weights, experts};
}

Choice choose_by_softmax(Builder& builder, const Value& logits, int layer) {
  const ExpertConfig& c = *builder.facts.config.experts;
  if (builder.has(kBias, layer)) {
    const Value scores = softmax(logits);
    const Value experts = topk(with_bias(builder, scores, layer), c.used, c.groups, c.used_groups).second;
    const Value weights = take_along_dim(scores, experts);
    constexpr double kLeast = 1e-12;  // of the sum, as in the published code
    return {c.normalizes ? div(weights, clamp(sum(weights), kLeast, std::nullopt)) : weights, experts};
  }
  if (c.groups == 1) {
    auto [weights, experts] = topk_softmax(logits, c.used, c.normalizes);
    return {std::move(weights), std::move(experts)};
  }
  auto [weights, experts] = topk(softmax(logits), c.used, c.groups, c.used_groups);
  return {c.normalizes ? div(weights, sum(weights)) : weights, experts};
}

// For each token, the sum of exp(logit - best) over the logits that are near to the best one [s0, 1]. Larger logits are
// those of experts that were chosen before.
Value sum_of_near(const Value& logits, const Value& best, double tolerance) {
  const Value below = sub(best, logits);
  const Value none = mul_scalar(below, 0.0);
  // A distance above twice the tolerance is not near. That of two zeros is NaN, which is near.
  const auto bound = std::nextafter(static_cast<float>(2 * tolerance), std::numeric_limits<float>::infinity());
  const Value distance = div(below, maximum(abs(logits), best));
  const Value near = where_at_most(neg(distance), none, exp(neg(below)), -bound);
  return sum(where_at_most(neg(below), near, none, 0.0));
}

// SparseMixer as it acts in inference (Liu et al., 2023): training draws experts from the near ones.
Choice choose_by_mixer(const ModelConfig& c, const Value& logits) {
  const auto [best, experts] = topk(logits, c.experts->used);
  const Value first = slice(best, -1, 0, 1), second = slice(best, -1, 1, 2);
  const Value of_first = sum_of_near(logits, first, c.mixer_tolerance);
  const Value of_second = sum_of_near(logits, second, c.mixer_tolerance);
  // The second one's sum is without the first one, also if their logits are equal.
  const Value zero = mul_scalar(second, 0.0);
  const Value of_equal = where_at_most(sub(first, second), add_scalar(zero, 1.0), zero, 0.0);
  return {concat({reciprocal(of_first), reciprocal(sub(of_second, of_equal))}, -1), experts};
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
  if (c.weighs_inputs) {
    auto [chosen, experts] = topk(logits, c.used);
    choice = {sigmoid(chosen), experts};
  } else if (c.scores == ExpertScores::sigmoid) {
    choice = choose_by_sigmoid(builder, logits, layer);
  } else if (c.scores == ExpertScores::sparse_mixer) {
    choice = choose_by_mixer(builder.facts.config, logits);
  } else if (c.scores == ExpertScores::softmax) {
    choice = choose_by_softmax(builder, logits, layer);
  } else {
    auto [chosen, experts] = topk(logits, c.used);
    choice = {softmax(chosen), experts};
  }
  if (c.scale != 1) choice.weights = mul_scalar(choice.weights, c.scale);
  if (builder.has(kExpertScales, layer))
    choice.weights = mul(choice.weights, scales_of(builder, choice.experts, layer));
  return choice;
}

// What `gate` combines in the expert that computes all tokens: gate and up, or up alone.
Value gate_up_of_shared(Builder& builder, const Value& x, int layer) {
  if (builder.has("ffn_gate_up_shexp", layer)) return linear(builder, x, "ffn_gate_up_shexp", layer);
  if (!builder.has("ffn_gate_shexp", layer)) return linear(builder, x, "ffn_up_shexp", layer);
  return merged_linear(builder, x, "gate_up_shexp", {"ffn_gate_shexp", "ffn_up_shexp"}, layer);
}

// The same of the experts of rows.
Value gate_up_of_experts(Builder& builder, const ExpertRows& rows, int layer) {
  if (builder.has("ffn_gate_up_exps", layer))
    return expert_linear(builder, rows, "ffn_gate_up_exps", {"ffn_gate_up_exps"}, layer);
  if (!builder.has("ffn_gate_exps", layer)) return expert_linear(builder, rows, "ffn_up_exps", {"ffn_up_exps"}, layer);
  return expert_linear(builder, rows, "gate_up_exps", {"ffn_gate_exps", "ffn_up_exps"}, layer);
}

// The expert that computes all tokens; a gate of its own may scale its result.
Value shared_expert(Builder& builder, const Value& x, const GateFunction& gate, int layer) {
  const Value gate_up = gate_up_of_shared(builder, x, layer);
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
  // Each token has one expert then.
  const bool weighs_inputs = builder.facts.config.experts->weighs_inputs;
  const bool has_latents = builder.has("ffn_latent_down", layer);
  const Value read = has_latents ? linear(builder, x, "ffn_latent_down", layer) : x;
  const Value weighed = weighs_inputs ? mul(read, in_dtype(choice.weights, x.dtype())) : read;
  const Value gate_up = gate_up_of_experts(builder, {weighed, tokens, experts}, layer);
  const Value computed =
      expert_linear(builder, {gate(gate_up), {}, experts}, "ffn_down_exps", {"ffn_down_exps"}, layer);
  Value result = weighs_inputs ? index_select(computed, reshape(positions, {x.dim(0)}))
                               : moe_unpermute(computed, choice.weights, positions);
  if (has_latents) result = linear(builder, result, "ffn_latent_up", layer);
  const bool has_shared = builder.facts.config.experts->shared_width > 0;
  return has_shared ? add(result, shared_expert(builder, x, gate, layer)) : result;
}

}  // namespace weft::nn
