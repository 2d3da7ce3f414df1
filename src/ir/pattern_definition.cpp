#include "ir/pattern_definition.h"

#include <deque>

#include "base/error.h"

namespace weft {

class PatternDefinition::Trace : public Evaluator {
 public:
  Trace(std::string name, const OpTable& ops) : Evaluator(ops), pattern{.name = std::move(name)} {}

  Attributes complete(const Op& op, const NamedAttributes& given) const override {
    return complete_attributes(pattern, &op, given);
  }

  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool inplace) override {
    CHECK(body != nullptr, "[{}] {} is outside before and after", pattern.name, op.name);
    CHECK(!inplace, "[{}] {}: patterns have no maybe_inplace", pattern.name, op.name);
    PatternNode node{.name = op.name, .op = &op, .operands = {}, .attributes = attributes};
    for (const Value& operand : operands)
      node.operands.push_back(operand.present() ? place_of(operand) : PatternOperand());
    Values results;
    for (std::size_t i = 0; i < op.schema.results.size(); ++i) {
      node.results.emplace_back();
      results.push_back(make({.node = static_cast<int>(body->nodes.size()), .result = static_cast<int>(i)}));
    }
    body->nodes.push_back(std::move(node));
    return results;
  }

  Value make(PatternOperand operand) {
    places.push_back(operand);
    return Value::of_pattern(*this, static_cast<int>(places.size()) - 1);
  }

  const PatternOperand& place_of(const Value& value) const {
    CHECK(value.present() && &value.home() == this, "[{}] takes only values of its own", pattern.name);
    return places.at(static_cast<std::size_t>(value.pattern_number()));
  }

  void run(PatternBody& into, const std::function<Values()>& function) {
    body = &into;
    for (const Value& result : function()) into.results.push_back(place_of(result));
    body = nullptr;
  }

  Value value(std::string name, std::optional<PatternType> type) {
    const int index = static_cast<int>(pattern.wildcards.size());
    add_value_wildcard(pattern, std::move(name), std::move(type));
    return make({.wildcard = index});
  }

  Attribute wildcard(std::string name, WildcardKind kind) {
    Attribute symbol = Dim::symbol("?" + name);
    add_wildcard(pattern, std::move(name), kind);
    return symbol;
  }

  Scalar real(std::string name) { return Scalar(reals.emplace_back(wildcard(std::move(name), WildcardKind::real))); }

  Pattern pattern;
  PatternBody* body = nullptr;         // the body being traced
  std::vector<PatternOperand> places;  // indexed by Value::pattern_number
  std::deque<Attribute> reals;         // Scalars refer to these
};

PatternDefinition::PatternDefinition(std::string name, const OpTable& ops)
    : trace_(std::make_unique<Trace>(std::move(name), ops)) {}
PatternDefinition::PatternDefinition(PatternDefinition&&) noexcept = default;
PatternDefinition::~PatternDefinition() = default;

Value PatternDefinition::value(std::string name) { return trace_->value(std::move(name), std::nullopt); }

Value PatternDefinition::value(std::string name, PatternType type) {
  return trace_->value(std::move(name), std::move(type));
}

Scalar PatternDefinition::real(std::string name) { return trace_->real(std::move(name)); }

Attribute PatternDefinition::integer(std::string name) {
  return trace_->wildcard(std::move(name), WildcardKind::integer);
}

Attribute PatternDefinition::word(std::string name) { return trace_->wildcard(std::move(name), WildcardKind::string); }

Attribute PatternDefinition::dtype(std::string name) { return trace_->wildcard(std::move(name), WildcardKind::dtype); }

Attribute PatternDefinition::attribute(std::string name, ParameterType type) {
  switch (type) {
    case ParameterType::integer:
      return integer(std::move(name));
    case ParameterType::real:
      return trace_->wildcard(std::move(name), WildcardKind::real);
    case ParameterType::boolean:
      return trace_->wildcard(std::move(name), WildcardKind::boolean);
    case ParameterType::string:
      return word(std::move(name));
    case ParameterType::dtype:
      return dtype(std::move(name));
    default:
      CHECK(false, "[{}] there is no wildcard for the list {}", trace_->pattern.name, name);
  }
  return {};
}

void PatternDefinition::one_of(const std::string& wildcard, std::vector<Attribute> values) {
  add_condition(trace_->pattern, wildcard, Relation::one_of, std::move(values));
}

void PatternDefinition::at_least(const std::string& wildcard, Attribute value) {
  add_condition(trace_->pattern, wildcard, Relation::at_least, {std::move(value)});
}

void PatternDefinition::before(const std::function<Values()>& function) {
  trace_->run(trace_->pattern.before, function);
}

void PatternDefinition::after(const std::function<Values()>& function) { trace_->run(trace_->pattern.after, function); }

Pattern PatternDefinition::finish() && {
  const auto breach = broken_rule(trace_->pattern);
  CHECK(!breach, "[{}] {}", trace_->pattern.name, breach->message);
  return std::move(trace_->pattern);
}

}  // namespace weft
