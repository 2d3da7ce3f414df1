#pragma once

// Signatures in PyTorch's grammar:
//   rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor
//   fused_add_rms_norm(Tensor x, Tensor x_residual, ...) -> (Tensor, Tensor)
// Types: Tensor Tensor? Tensor[] int int? float float? bool str str? ScalarType ScalarType? int[] int[]? float[]
// (integers may be dim expressions; SymInt is read as int). Tensors come first, then attributes. A default of `str`
// that is one lower-case word is printed and read as an enum word.
//
// Of our own is a mark behind `float`, as aliases are marked behind `Tensor` there:
//   clamp(Tensor x, float(liftable)? min=None, float(liftable)? max=None) -> Tensor
// Calls that differ in this number alone may become one function that is given it (codegen/lift_scalars.h). Only what
// has code of its own has marks, a primitive: an op's meaning hands its numbers on to those.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/attribute.h"

namespace weft {

enum class ParameterType : std::uint8_t {
  tensor,
  integer,
  real,
  boolean,
  string,
  dtype,
  integer_list,
  real_list,
  tensor_list
};

struct Parameter {
  std::string name;
  ParameterType type = ParameterType::tensor;
  bool optional = false;
  bool is_liftable = false;
  std::optional<Attribute> default_value;  // set when the schema states one
  bool operator==(const Parameter&) const = default;
};

struct Schema {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<std::string> results;  // names of the results, "" where the schema gives none

  std::size_t tensor_count() const;                  // how many leading parameters are tensors
  int parameter_index(std::string_view name) const;  // -1 when absent
  std::string text() const;
  bool operator==(const Schema&) const = default;
};

// The value as an attribute of this parameter: an integer becomes a float where the schema says float; a string, a
// dtype or a symbol becomes an enum word where it says str. UserError when the value is of another type; `op` is named
// in the message.
Attribute conform(const Attribute& value, const Parameter& parameter, std::string_view op);

// UserError with the column on anything else.
Schema parse_schema(std::string_view text);

}  // namespace weft
