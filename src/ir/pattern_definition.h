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
// Each function runs once, immediately. Its Values have no type, so a function that asks for one gets an InternalError.
// When a typed op function takes a plain number, a wildcard can be passed only with `call` of ir/op.h.

#include <functional>
#include <memory>

#include "ir/pattern.h"

namespace weft {

class PatternDefinition {
 public:
  PatternDefinition(std::string name, const OpTable& ops);
  PatternDefinition(PatternDefinition&&) noexcept;
  ~PatternDefinition();

  // Wildcards; names are without `?`. A value without a type also matches an absent operand, and an attribute without
  // conditions matches `none`.
  Value value(std::string name);
  // A value that must have this type. Each dim or dtype `?name` in it is a wildcard, which attributes may use.
  Value value(std::string name, PatternType type);
  Scalar real(std::string name);  // it points into this definition and must not outlive it
  Attribute integer(std::string name);
  Attribute word(std::string name);  // a string or enum word
  Attribute dtype(std::string name);
  // For an attribute of this type; InternalError for a list.
  Attribute attribute(std::string name, ParameterType type);
  // The wildcard matches only these values.
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
