#pragma once

// What names a scheme of quantization, as vLLM's QuantKey: the dtype of the codes, and what a scale is for.

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/dtype.h"

namespace weft {

// Neighbours in a row that share a scale: of NVFP4, and of MXFP4 and MXFP8 (OCP Microscaling specification, 5.2).
inline constexpr std::int64_t kNvfp4Group = 16, kMicroscalingGroup = 32;

// How many rows and columns share a scale; -1: all of them.
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
  bool is_static = false;  // known before the values are
  GroupShape group;
  std::string text() const;  // scale(f32,static,per_tensor)
  bool operator==(const ScaleKey&) const = default;
};

struct QuantKey {
  DType dtype = DType::f8e4m3;
  ScaleKey scale = {};
  std::optional<ScaleKey> scale2 = {};  // of the scales
  bool symmetric = true;                // code 0 stands for 0.0
  std::string text() const;             // QuantKey(f8e4m3,scale(f32,static,per_tensor),symmetric)
  bool operator==(const QuantKey&) const = default;
};

// The schemes that have a name of their own in the field. `fp8` is the one of the device's dtypes for it.
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
