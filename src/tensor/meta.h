#pragma once

// The type of a value, all that is known without its data.
//
//   f32[s0, 576]                                 a tensor, row-major contiguous
//   f32[s0, 576]{960, 1}                         strides in elements, if they are not contiguous
//   q4_1[960, 576] packed=q4x32                  a weight packed for its kernels
//   kv[f16, block=16, heads=3, head_dim=64]      the KV pages of one layer
//   kv[f32, block=16, heads=3, head_dim=64, state_rows=8]   pages of recurrent states
//   batch                                        what attention needs to know about the step
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
  bool keys_are_values = false;  // a token has one row for both, as the latents of latent attention
  // Not 0: the pages have no keys and values. Each has the state of a recurrent layer after the last computed token of
  // its block: for each head [state_rows][head_dim].
  std::int64_t state_rows = 0;
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

  // Throws UserError if the rank is above kMaxRank, an extent is negative, or the last one does not fill whole blocks
  // of the dtype.
  static Meta tensor(DType dtype, Shape shape);
  // Strides equal to the contiguous ones are dropped, and strides of dims of extent 1 are normalized. Throws UserError
  // if the counts of strides and dims differ, a stride is negative, or a block type has strides.
  static Meta strided(DType dtype, Shape shape, Shape strides);
  static Meta pages(KvLayout layout);
  static Meta batch();

  bool is_tensor() const { return kind == MetaKind::tensor; }
  bool is_contiguous() const { return strides.empty(); }
  std::size_t rank() const { return shape.size(); }
  // Strides in elements, also if they are the contiguous ones.
  Shape full_strides() const;
  // Bytes from the first element to the end of the last one: the storage that a tensor of this type needs. Symbolic if
  // the shape is. Throws InternalError for a packed type.
  Dim bytes() const;
  std::string text() const;
  bool operator==(const Meta&) const = default;
};

// The row-major strides of a shape.
Shape contiguous_strides(const Shape& shape);

}  // namespace weft
