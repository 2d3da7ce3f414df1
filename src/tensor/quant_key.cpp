#include "tensor/quant_key.h"

#include <fmt/format.h>

namespace weft {

std::string GroupShape::text() const {
  if (*this == per_tensor()) return "per_tensor";
  if (*this == per_token()) return "per_token";
  if (*this == per_channel()) return "per_channel";
  return fmt::format("{}x{}", rows, columns);
}

std::string ScaleKey::text() const {
  return fmt::format("scale({},{},{})", dtype_text(dtype), is_static ? "static" : "dynamic", group.text());
}

std::string QuantKey::text() const {
  return fmt::format("QuantKey({},{},{}{})", dtype_text(dtype), scale.text(), scale2 ? scale2->text() + "," : "",
                     symmetric ? "symmetric" : "asymmetric");
}

QuantKey fp8_static_tensor(DType fp8) { return {fp8, {.is_static = true, .group = GroupShape::per_tensor()}}; }
QuantKey fp8_dynamic_tensor(DType fp8) { return {fp8, {.group = GroupShape::per_tensor()}}; }
QuantKey fp8_dynamic_token(DType fp8) { return {fp8, {.group = GroupShape::per_token()}}; }
QuantKey fp8_dynamic_group(DType fp8, std::int64_t columns) { return {fp8, {.group = {1, columns}}}; }
QuantKey int8_static_tensor() { return {DType::i8, {.is_static = true, .group = GroupShape::per_tensor()}}; }
QuantKey int8_dynamic_token() { return {DType::i8, {.group = GroupShape::per_token()}}; }
QuantKey int8_dynamic_group(std::int64_t columns) { return {DType::i8, {.group = {1, columns}}}; }

QuantKey nvfp4_dynamic() {
  return {DType::f4e2m1,
          {.dtype = DType::f8e4m3, .group = {1, kNvfp4Group}},
          ScaleKey{.is_static = true, .group = GroupShape::per_tensor()}};
}

QuantKey mxfp4_dynamic() { return {DType::f4e2m1, {.dtype = DType::f8e8m0, .group = {1, kMicroscalingGroup}}}; }
QuantKey mxfp8_dynamic() { return {DType::f8e4m3, {.dtype = DType::f8e8m0, .group = {1, kMicroscalingGroup}}}; }

}  // namespace weft
