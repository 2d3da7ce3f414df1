#pragma once

// Signatures in PyTorch's grammar:
//   rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor
//   fused_add_rms_norm(Tensor x, Tensor x_residual, ...) -> (Tensor, Tensor)
// Types: Tensor Tensor? Tensor[] int int? float float? bool str str? ScalarType ScalarType? int[] int[]? float[]
// (integers may be dim expressions; SymInt is read as int). Tensors are first, then attributes. A default of `str` that
// is one lower-case word is printed and parsed as an enum word.
//
// A mark after `float` is an extension of this grammar, which has marks after `Tensor` for aliases:
//   clamp(Tensor x, float(liftable)? min=None, float(liftable)? max=None) -> Tensor
// Calls that differ only in this number may become one function that takes it as an argument (codegen/lift_scalars.h).
// Only ops with code of their own, primitives, have marks: the meaning of another op passes its numbers on to
// primitives.

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
  std::optional<Attribute> default_value;  // set if the schema states one
  bool operator==(const Parameter&) const = default;
};

struct Schema {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<std::string> results;  // names of the results, "" if the schema has none

  std::size_t tensor_count() const;                  // number of leading parameters that are tensors
  int parameter_index(std::string_view name) const;  // -1 when absent
  std::string text() const;
  bool operator==(const Schema&) const = default;
};

// Returns the value as an attribute of this parameter. An integer becomes a float if the schema says float; a string, a
// dtype or a symbol becomes an enum word if it says str. Throws UserError, with `op` in the message, if the value has
// another type.
Attribute conform(const Attribute& value, const Parameter& parameter, std::string_view op);

// Throws UserError with the column if the text is no schema.
Schema parse_schema(std::string_view text);

}  // namespace weft
