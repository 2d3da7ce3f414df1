#include "passes/quant_patterns.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/cast.h"
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

// Whether the front reads the operand of the fused op, or this operand cast to f32.
enum class FrontInput : std::uint8_t { as_is, cast_to_f32 };

class QuantPattern {
 public:
  QuantPattern(const OpTable& ops, const Op& front, const Quantizer& quantizer, FrontInput input)
      : front_(front),
        quantizer_(quantizer),
        fused_(*quantizer.fused),
        input_(input),
        pattern_(fused_.name + (input == FrontInput::as_is ? "" : "_wide"), ops) {}

  PatternDefinition make() && {
    const Op& epilogue = *quantizer_.op;
    // Wildcards follow the parameter order of the fused op, as a reader of the pattern expects.
    for (const Parameter& parameter : fused_.schema.parameters)
      if (is_of(front_, parameter) || is_of(epilogue, parameter)) stand_for(parameter);
    pattern_.before([&] {
      Values operands = values_of(front_, {});
      if (input_ == FrontInput::cast_to_f32) operands[0] = cast(operands[0], DType::f32);
      const Values made = call(front_.name.c_str(), operands, attributes_of(front_));
      Values results = call(epilogue.name.c_str(), values_of(epilogue, made[0]), attributes_of(epilogue));
      results.insert(results.end(), made.begin() + 1, made.end());
      return results;
    });
    pattern_.after([&] {
      NamedAttributes attributes = attributes_of(fused_);
      if (input_ == FrontInput::cast_to_f32) attributes.emplace_back("intermediate", EnumWord{"f32"});
      return call(fused_.name.c_str(), values_of(fused_, {}), attributes);
    });
    return std::move(pattern_);
  }

 private:
  static bool is_of(const Op& op, const Parameter& parameter) { return op.schema.parameter_index(parameter.name) >= 0; }

  void stand_for(const Parameter& parameter) {
    if (parameter.type == ParameterType::tensor) {
      const bool is_narrow = values_.empty() && input_ == FrontInput::cast_to_f32;
      values_.emplace(parameter.name, is_narrow ? narrow_value(parameter.name) : pattern_.value(parameter.name));
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

  // A value of a type that f32 holds without rounding.
  Value narrow_value(const std::string& name) {
    const Value value =
        pattern_.value(name, {.dtype_wildcard = "narrow", .open_shape = true, .shape = {Dim::symbol("?columns")}});
    pattern_.one_of("narrow", {DType::f16, DType::bf16});
    return value;
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
  FrontInput input_;
  PatternDefinition pattern_;
  std::map<std::string, Value> values_;
  NamedAttributes attributes_;
};

// Whether the fused op can compute the front in f32, whatever the dtype of its operand.
bool computes_in_f32(const Op& front, const Op& fused) {
  constexpr const char* kIntermediate = "intermediate";
  return fused.schema.parameter_index(kIntermediate) >= 0 && front.schema.parameter_index(kIntermediate) < 0;
}

}  // namespace

std::vector<QuantKey> joined_schemes(DType fp8) {
  return {fp8_static_tensor(fp8),      fp8_dynamic_token(fp8),  fp8_dynamic_group(fp8, 64),
          fp8_dynamic_group(fp8, 128), int8_dynamic_token(),    int8_dynamic_group(32),
          int8_dynamic_group(64),      int8_dynamic_group(128), nvfp4_dynamic()};
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
    // The wide pattern comes first, because the other one matches the same nodes without the cast.
    for (const Quantizer& quantizer : quantizers)
      for (const FrontInput input : {FrontInput::cast_to_f32, FrontInput::as_is}) {
        const bool is_wide = input == FrontInput::cast_to_f32;
        if (is_wide && !computes_in_f32(patterns.ops().at(front), *quantizer.fused)) continue;
        patterns.add(QuantPattern(patterns.ops(), patterns.ops().at(front), quantizer, input).make());
      }
  }
}

}  // namespace weft
