#pragma once

// Writes a pattern as two functions over Values.
//
//   PatternDefinition pattern("add_rms_norm", ops);
//   const Value x = pattern.value("x"), residual = pattern.value("residual"), weight = pattern.value("weight");
//   const Scalar epsilon = pattern.real("epsilon");
//   pattern.before([&] {
//     const Value sum = add(x, residual);
//     return Values{rms_norm(sum, weight, epsilon), sum};
//   });
//   pattern.after([&] { ... });
//
// The functions run once, at once, and see Values without a type: one that asks for it is an InternalError. Where a
// typed op function takes a plain number, `call` of ir/op.h takes the wildcard.

#include <functional>
#include <memory>

#include "ir/pattern.h"

namespace weft {

class PatternDefinition {
 public:
  PatternDefinition(std::string name, const OpTable& ops);
  PatternDefinition(PatternDefinition&&) noexcept;
  ~PatternDefinition();

  // Wildcards; names without `?`. Each stands for none as well.
  Value value(std::string name);
  // Of this type alone. Its dims and dtype that are `?name` are wildcards, which attributes may hold.
  Value value(std::string name, PatternType type);
  Scalar real(std::string name);  // it looks into this definition and lives no longer
  Attribute integer(std::string name);
  Attribute word(std::string name);  // a string or enum word
  Attribute dtype(std::string name);
  // For an attribute of this type; InternalError for a list.
  Attribute attribute(std::string name, ParameterType type);
  // Only these values of it match.
  void one_of(const std::string& wildcard, std::vector<Attribute> values);
  void at_least(const std::string& wildcard, Attribute value);

  void before(const std::function<Values()>& function);
  void after(const std::function<Values()>& function);

  // InternalError when the pattern breaks a rule of broken_rule.
  Pattern finish() &&;

 private:
  class Trace;
  std::unique_ptr<Trace> trace_;
};

}  // namespace weft
