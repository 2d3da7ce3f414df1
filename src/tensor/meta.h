#pragma once

// The type of a value: what is known of it without its data.
//
//   f32[s0, 576]                                 a tensor, row-major contiguous
//   f32[s0, 576]{960, 1}                         strides in elements where they are not contiguous
//   q4_1[960, 576] packed=q4x32                  a weight laid out for its kernels
//   kv[f16, block=16, heads=3, head_dim=64]      the KV pages of one layer
//   batch                                        what attention needs to know of the step
//   int, float                                   a plain number

#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/dim.h"
#include "tensor/dtype.h"

namespace weft {

inline constexpr int kMaxRank = 6;

enum class MetaKind : std::uint8_t { tensor, kv, batch, integer, real };

struct KvLayout {
  DType dtype = DType::f16;
  std::int64_t block = 16;  // tokens a page
  std::int64_t heads = 1;   // key/value heads
  std::int64_t head_dim = 64;
  bool operator==(const KvLayout&) const = default;
};

struct Meta {
  MetaKind kind = MetaKind::tensor;
  DType dtype = DType::f32;  // kind tensor
  Shape shape;               // kind tensor; counts elements, also for block types
  Shape strides;             // in elements; empty when row-major contiguous (always so for block types)
  std::string packed;        // name of the packing of a weight, "" when plain
  KvLayout kv;               // kind kv
  DeviceId device;

  // UserError when the rank is above kMaxRank, an extent is a negative number, or the last one does not fill whole
  // blocks of the dtype.
  static Meta tensor(DType dtype, Shape shape);
  // Strides equal to the contiguous ones are dropped; strides of extent-1 dims are normalized away. UserError when the
  // counts of strides and dims differ, a stride is a negative number, or a block type is given strides of its own.
  static Meta strided(DType dtype, Shape shape, Shape strides);
  static Meta pages(KvLayout layout);
  static Meta batch();

  bool is_tensor() const { return kind == MetaKind::tensor; }
  bool is_contiguous() const { return strides.empty(); }
  std::size_t rank() const { return shape.size(); }
  // Strides in elements, spelled out.
  Shape full_strides() const;
  // Bytes from the first element to behind the last one: the storage that a tensor of this type needs. Symbolic where
  // the shape is; InternalError for a packed one.
  Dim bytes() const;
  std::string text() const;
  bool operator==(const Meta&) const = default;
};

// The row-major strides of a shape.
Shape contiguous_strides(const Shape& shape);

}  // namespace weft
