#pragma once

// The key of a quantization scheme, as vLLM's QuantKey: the dtype of the codes, and the dtype and group of the scales.

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/dtype.h"

namespace weft {

// The number of consecutive columns that share a scale, for NVFP4, and for MXFP4 and MXFP8 (OCP Microscaling
// specification, 5.2).
inline constexpr std::int64_t kNvfp4Group = 16, kMicroscalingGroup = 32;

// The number of rows and columns that share a scale; -1 for all of them.
struct GroupShape {
  std::int64_t rows = -1;
  std::int64_t columns = -1;

  static GroupShape per_tensor() { return {-1, -1}; }
  static GroupShape per_token() { return {1, -1}; }
  static GroupShape per_channel() { return {-1, 1}; }
  std::string text() const;  // per_tensor, per_token, per_channel, 1x128
  bool operator==(const GroupShape&) const = default;
};

struct ScaleKey {
  DType dtype = DType::f32;
  bool is_static = false;  // known before the values
  GroupShape group;
  std::string text() const;  // scale(f32,static,per_tensor)
  bool operator==(const ScaleKey&) const = default;
};

struct QuantKey {
  DType dtype = DType::f8e4m3;
  ScaleKey scale = {};
  std::optional<ScaleKey> scale2 = {};  // of the scales
  bool symmetric = true;                // code 0 is 0.0
  std::string text() const;             // QuantKey(f8e4m3,scale(f32,static,per_tensor),symmetric)
  bool operator==(const QuantKey&) const = default;
};

// Schemes with a common name in the field. `fp8` is the fp8 dtype of the device.
QuantKey fp8_static_tensor(DType fp8);
QuantKey fp8_dynamic_tensor(DType fp8);
QuantKey fp8_dynamic_token(DType fp8);
QuantKey fp8_dynamic_group(DType fp8, std::int64_t columns);
QuantKey int8_static_tensor();
QuantKey int8_dynamic_token();
QuantKey int8_dynamic_group(std::int64_t columns);
QuantKey nvfp4_dynamic();
QuantKey mxfp4_dynamic();
QuantKey mxfp8_dynamic();

}  // namespace weft
