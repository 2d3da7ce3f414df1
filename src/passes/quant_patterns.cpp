#include "passes/quant_patterns.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "passes/scheme_table.h"

namespace weft {
namespace {

// A quantizing op, the attribute values that its schemes accept, and the op that fuses the front op with it.
struct Quantizer {
  const Op* op = nullptr;
  const Op* fused = nullptr;
  std::map<std::string, std::vector<Attribute>> wanted;

  void add(const SchemeRow& row) {
    for (const auto& [name, value] : row.attributes) {
      std::vector<Attribute>& values = wanted[name];
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  }
};

class QuantPattern {
 public:
  QuantPattern(const OpTable& ops, const Op& front, const Quantizer& quantizer)
      : front_(front), quantizer_(quantizer), fused_(*quantizer.fused), pattern_(fused_.name, ops) {}

  PatternDefinition make() && {
    const Op& tail = *quantizer_.op;
    // Wildcards follow the parameter order of the fused op, as a reader of the pattern expects.
    for (const Parameter& parameter : fused_.schema.parameters)
      if (is_of(front_, parameter) || is_of(tail, parameter)) stand_for(parameter);
    pattern_.before([&] {
      const Values made = call(front_.name.c_str(), values_of(front_, {}), attributes_of(front_));
      Values results = call(tail.name.c_str(), values_of(tail, made[0]), attributes_of(tail));
      results.insert(results.end(), made.begin() + 1, made.end());
      return results;
    });
    pattern_.after([&] { return call(fused_.name.c_str(), values_of(fused_, {}), attributes_of(fused_)); });
    return std::move(pattern_);
  }

 private:
  static bool is_of(const Op& op, const Parameter& parameter) { return op.schema.parameter_index(parameter.name) >= 0; }

  void stand_for(const Parameter& parameter) {
    if (parameter.type == ParameterType::tensor) {
      values_.emplace(parameter.name, pattern_.value(parameter.name));
      return;
    }
    const auto wanted = quantizer_.wanted.find(parameter.name);
    if (wanted != quantizer_.wanted.end() && wanted->second.size() == 1) {
      attributes_.emplace_back(parameter.name, wanted->second[0]);
      return;
    }
    attributes_.emplace_back(parameter.name, pattern_.attribute(parameter.name, parameter.type));
    if (wanted != quantizer_.wanted.end()) pattern_.one_of(parameter.name, wanted->second);
  }

  // The op's operands; the tensor to quantize, if given, is the first.
  Values values_of(const Op& op, const Value& quantized) const {
    Values values;
    if (quantized.present()) values.push_back(quantized);
    for (std::size_t i = values.size(); i < op.schema.tensor_count(); ++i)
      values.push_back(values_.at(op.schema.parameters[i].name));
    return values;
  }

  // Attributes that only the fused op has keep their default, which gives the same results as the two ops.
  NamedAttributes attributes_of(const Op& op) const {
    NamedAttributes own;
    for (const auto& attribute : attributes_)
      if (op.schema.parameter_index(attribute.first) >= 0) own.push_back(attribute);
    return own;
  }

  const Op& front_;
  const Quantizer& quantizer_;
  const Op& fused_;
  PatternDefinition pattern_;
  std::map<std::string, Value> values_;
  NamedAttributes attributes_;
};

}  // namespace

std::vector<QuantKey> joined_schemes(DType fp8) {
  return {fp8_static_tensor(fp8),
          fp8_dynamic_token(fp8),
          fp8_dynamic_group(fp8, 64),
          fp8_dynamic_group(fp8, 128),
          int8_dynamic_token(),
          int8_dynamic_group(32),
          nvfp4_dynamic()};
}

void add_quant_patterns(PatternList& patterns, const std::vector<std::string>& fronts) {
  const SchemeTable schemes(patterns.ops());
  for (const std::string& front : fronts) {
    std::vector<Quantizer> quantizers;
    for (const QuantKey& key : joined_schemes(patterns.fp8())) {
      const SchemeRow* row = schemes.find(key);
      CHECK(row != nullptr, "[{}] no op quantizes by {}, which the pattern of {} needs", patterns.fusion(), key.text(),
            front);
      const Op* fused = schemes.fused(front, *row);
      CHECK(fused != nullptr, "[{}] no op is {} and {} in one, which the pattern over {} needs", patterns.fusion(),
            front, row->quantizer->name, key.text());
      auto known = std::find_if(quantizers.begin(), quantizers.end(),
                                [&](const Quantizer& one) { return one.op == row->quantizer; });
      if (known == quantizers.end()) known = quantizers.insert(known, Quantizer{row->quantizer, fused, {}});
      known->add(*row);
    }
    for (const Quantizer& quantizer : quantizers)
      patterns.add(QuantPattern(patterns.ops(), patterns.ops().at(front), quantizer).make());
  }
}

}  // namespace weft
