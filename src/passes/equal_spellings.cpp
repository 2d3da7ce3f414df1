#include "passes/equal_spellings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/trace.h"
#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/div.h"
#include "ops/div_scalar.h"
#include "ops/mul_scalar.h"
#include "ops/neg.h"
#include "ops/reshape.h"
#include "ops/round.h"
#include "passes/all.h"

namespace weft {
namespace {

constexpr double kNoBound = -std::numeric_limits<double>::infinity();

const Node* made_by(const GraphValue* value, const char* op) {
  return value != nullptr && value->producer != nullptr && value->producer->is(op) ? value->producer : nullptr;
}

bool is_widening(const Node& cast) {
  const DType from = cast.operands[0]->meta.dtype;
  return (from == DType::f16 || from == DType::bf16) && cast.result()->meta.dtype == DType::f32;
}

std::optional<double> bound_of(const Node& clamp, const char* name) {
  const Attribute& bound = clamp.attributes.at(name);
  return bound.is_none() ? std::nullopt : std::optional(bound.real());
}

float scalar_of(const Node& node) { return static_cast<float>(node.attributes.at("value").real()); }

bool is_scaled(const Node& node) { return (node.is("div_scalar") || node.is("mul_scalar")) && scalar_of(node) > 0; }

float scaled(const Node& node, float x) { return node.is("div_scalar") ? x / scalar_of(node) : x * scalar_of(node); }

// The values whose largest magnitude the scale has, divided by `limit` at most; null where that is not known. Clamps
// from below, and powers of two that are rounded up, only make the scale larger. A view might give the scale to other
// values.
const GraphValue* values_scaled_by(const GraphValue* scale, double limit) {
  const Node* node = scale->producer;
  bool is_divided = false;
  for (; node != nullptr; node = node->operands[0] == nullptr ? nullptr : node->operands[0]->producer) {
    if (node->is("amax")) {
      const Node* magnitudes = made_by(node->operands[0], "abs");
      return is_divided && magnitudes != nullptr ? magnitudes->operands[0] : nullptr;
    }
    if ((node->is("clamp") && !bound_of(*node, "max")) ||
        (node->is("round_to_power_of_two") && node->attributes.at("rounding").word() == "up"))
      continue;
    if (!is_scaled(*node) || is_divided) return nullptr;
    const double divisor = node->is("div_scalar") ? scalar_of(*node) : 1 / static_cast<double>(scalar_of(*node));
    if (divisor > limit * (1 + 0x1p-22)) return nullptr;
    is_divided = true;
  }
  return nullptr;
}

// Whether all users, through casts and views, take the largest element only.
bool is_only_for_largest(const GraphValue* value) {
  return !value->uses.empty() && std::all_of(value->uses.begin(), value->uses.end(), [](const Use& use) {
    if (use.node->is("amax")) return true;
    const bool passes_on = use.node->is("reshape") || (use.node->is("cast") && is_widening(*use.node));
    return passes_on && is_only_for_largest(use.node->result());
  });
}

// Whether the values are rounded to codes after this node, through views.
bool is_only_for_codes(const GraphValue* value) {
  return !value->uses.empty() && std::all_of(value->uses.begin(), value->uses.end(), [](const Use& use) {
    if (use.node->is("cast")) return is_code(use.node->result()->meta.dtype);
    const bool passes_on = use.node->is("reshape") || use.node->is("round");
    return passes_on && is_only_for_codes(use.node->result());
  });
}

std::optional<double> constant_of(const GraphValue* value) {
  const Node* node = made_by(value, "constant");
  if (node == nullptr) return std::nullopt;
  const AttributeList& values = node->attributes.at("values").list();
  return values.size() == 1 ? std::optional(values[0].real()) : std::nullopt;
}

class Spelling {
 public:
  Spelling(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  void run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto it = graph_.nodes().begin(); it != graph_.nodes().end();) {
        Node* node = (it++)->get();
        if (node->op == nullptr || node->results.size() != 1 || node->operands.empty() ||
            node->operands[0] == nullptr || node->result()->uses.empty())
          continue;
        changed = rewrite(node) || changed;
      }
      common_subexpression_elimination(graph_, context_);
      dead_code_elimination(graph_, context_);
    }
  }

 private:
  bool rewrite(Node* node) {
    Trace trace(context_.ops, graph_, node);
    trace.set_origin(node->origin);
    const Value replacement = rewritten(*node, trace);
    if (!replacement.present() || replacement.meta() != node->result()->meta) return false;
    GraphValue* value = replacement.graph_value();
    if (value->name.empty()) value->name = node->result()->name;
    graph_.replace_all_uses(node->result(), value);
    graph_.erase(node);
    return true;
  }

  // An equal value, or none.
  static Value rewritten(const Node& node, Trace& trace) {
    if (node.is("cast")) return cast_first(node, trace);
    if (node.is("reshape")) return reshape_first(node, trace);
    if (node.is("maximum") || node.is("minimum")) return without_maximum(node, trace);
    if (node.is("mul")) return divided(node, trace);
    if (node.is("clamp")) return simpler_clamp(node, trace);
    return {};
  }

  static Value cast_first(const Node& node, Trace& trace) {
    const Node* before = node.operands[0]->producer;
    if (before == nullptr) return {};
    const DType dtype = node.result()->meta.dtype;
    const auto operand = [&] { return trace.of(before->operands[0]); };
    if (before->is("reshape")) return reshape(cast(operand(), dtype), node.result()->meta.shape);
    // A cast to integers cuts off the fraction.
    if (before->is("trunc") && dtype == DType::i8) return cast(operand(), dtype);
    if (!is_widening(node)) return {};
    if (before->is("abs")) return abs(cast(operand(), dtype));
    if (before->is("neg")) return neg(cast(operand(), dtype));
    if (before->is("amax")) return amax(cast(operand(), dtype), before->attributes.at("dim").integer());
    return {};
  }

  static Value reshape_first(const Node& node, Trace& trace) {
    const Node* before = made_by(node.operands[0], "abs");
    if (before == nullptr) return {};
    return abs(reshape(trace.of(before->operands[0]), node.result()->meta.shape));
  }

  static Value without_maximum(const Node& node, Trace& trace) {
    const bool is_maximum = node.is("maximum");
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      GraphValue *x = node.operands[i], *other = node.operands[1 - i];
      const Node* negated = made_by(other, "neg");
      // Where both are zeros the result may be -0, which amax makes 0.
      if (is_maximum && negated != nullptr && negated->operands[0] == x && is_only_for_largest(node.result()))
        return abs(trace.of(x));
      const std::optional<double> bound = constant_of(other);
      if (!bound || *bound == 0 || x->meta != node.result()->meta) continue;
      return is_maximum ? clamp(trace.of(x), bound, std::nullopt) : clamp(trace.of(x), std::nullopt, bound);
    }
    return {};
  }

  // The reciprocal of a power of two is exact, so that both ways round once.
  static Value divided(const Node& node, Trace& trace) {
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const Node* reciprocal = made_by(node.operands[i], "reciprocal");
      if (reciprocal == nullptr || !reciprocal->attributes.at("of_zero").is_none()) continue;
      GraphValue* scale = reciprocal->operands[0];
      const GraphValue* power = scale;
      while (const Node* view = made_by(power, "reshape")) power = view->operands[0];
      if (made_by(power, "round_to_power_of_two") == nullptr || !(lower_bound(scale) >= kLeastNormal)) continue;
      return div(trace.of(node.operands[1 - i]), trace.of(scale));
    }
    return {};
  }

  static Value simpler_clamp(const Node& node, Trace& trace) {
    const std::optional<double> min = bound_of(node, "min"), max = bound_of(node, "max");
    GraphValue* x = node.operands[0];
    if (x->meta.dtype != DType::f32) return {};
    const double least = lower_bound(x);
    // A zero of `min` leaves -0 as it is, so that any bound from 0 on will do.
    if (!max && (!min || least >= static_cast<float>(*min))) return trace.of(x);
    if (const Node* inner = made_by(x, "clamp")) return merged(*inner, min, max, trace);
    if (const Node* rounded = made_by(x, "round"); rounded != nullptr &&
                                                   min == (min ? std::optional(std::round(*min)) : min) &&
                                                   max == (max ? std::optional(std::round(*max)) : max))
      return round(clamp(trace.of(rounded->operands[0]), min, max));
    if (min && !max && x->producer != nullptr && is_scaled(*x->producer))
      return clamped_before(*x->producer, static_cast<float>(*min), trace);
    if (const Node* quotient = made_by(x, "div");
        quotient != nullptr && min && max && is_only_for_codes(node.result())) {
      const double limit = std::min(-*min, *max);
      const GraphValue* scale = quotient->operands[1];
      // Quotients are at most 2^-22 of the limit above it, which the cast rounds away.
      if (limit > 0 && lower_bound(scale) >= kLeastNormal && values_scaled_by(scale, limit) == quotient->operands[0])
        return trace.of(x);
    }
    return {};
  }

  static Value merged(const Node& inner, std::optional<double> min, std::optional<double> max, Trace& trace) {
    const std::optional<double> low = bound_of(inner, "min"), high = bound_of(inner, "max");
    if ((low && high && *low > *high) || (min && max && *min > *max)) return {};
    const auto bounded = [&](double bound) {
      return std::min(std::max(bound, min.value_or(kNoBound)), max.value_or(-kNoBound));
    };
    const auto at_end = [&](std::optional<double> own, std::optional<double> outer) {
      return own ? std::optional(bounded(*own)) : outer;
    };
    // Zeros of both signs in the bounds would have to be distinguished.
    for (const auto& bound : {low, high, min, max})
      if (bound && *bound == 0) return {};
    return clamp(trace.of(inner.operands[0]), at_end(low, min), at_end(high, max));
  }

  // clamp(x / k, min) is clamp(x, m) / k where m / k rounds to min.
  static Value clamped_before(const Node& scale, float min, Trace& trace) {
    if (!(min >= kLeastNormal)) return {};
    float m = scale.is("div_scalar") ? min * scalar_of(scale) : min / scalar_of(scale);
    m = std::nextafter(std::nextafter(m, 0.0F), 0.0F);
    for (int i = 0; i < 5; ++i, m = std::nextafter(m, std::numeric_limits<float>::infinity())) {
      if (!std::isfinite(m) || scaled(scale, m) != min) continue;
      const Value clamped = clamp(trace.of(scale.operands[0]), m, std::nullopt);
      const double value = scale.attributes.at("value").real();
      return scale.is("div_scalar") ? div_scalar(clamped, value) : mul_scalar(clamped, value);
    }
    return {};
  }

  Graph& graph_;
  PassContext& context_;
};

}  // namespace

double lower_bound(const GraphValue* value) {
  const Node* node = value->producer;
  if (node == nullptr || value->meta.dtype != DType::f32) return kNoBound;
  if (node->is("abs")) return 0;
  if (node->is("amax") || node->is("reshape")) return lower_bound(node->operands[0]);
  if (node->is("clamp")) {
    // Zeros of either sign pass a clamp to zero.
    const double of_operand = lower_bound(node->operands[0]);
    const double min = bound_of(*node, "min").value_or(kNoBound), max = bound_of(*node, "max").value_or(-kNoBound);
    const double bound = std::min(std::max(of_operand, static_cast<double>(static_cast<float>(min))), max);
    return bound == 0 && of_operand < 0 ? -std::numeric_limits<float>::denorm_min() : bound;
  }
  if (is_scaled(*node)) {
    const double of_operand = lower_bound(node->operands[0]);
    return of_operand < 0 ? kNoBound : scaled(*node, static_cast<float>(of_operand));
  }
  if (node->is("round_to_power_of_two")) {
    const double of_operand = lower_bound(node->operands[0]);
    if (of_operand <= 0) return of_operand < 0 ? kNoBound : 0;
    return node->attributes.at("rounding").word() == "up" ? of_operand : of_operand / 2;
  }
  return kNoBound;
}

bool is_code(DType dtype) { return dtype == DType::i8 || dtype == DType::f8e4m3 || dtype == DType::f8e4m3fnuz; }

bool may_quantize_groups(const Graph& graph) {
  bool has_largest = false, has_codes = false;
  for (const auto& node : graph.nodes()) {
    has_largest = has_largest || node->is("amax");
    has_codes = has_codes || (node->is("cast") && is_code(node->result()->meta.dtype));
  }
  return has_largest && has_codes;
}

void spell_alike(Graph& graph, PassContext& context) {
  if (may_quantize_groups(graph)) Spelling(graph, context).run();
}

}  // namespace weft
