#pragma once

// per_token_group_quant_fp8 and per_token_group_quant_int8, and the ops that end with them, share these: groups along
// rows and the layout of their scales, which column_major_scales and tma_aligned_scales select (spec D.8).
//
//   neither attribute     [..., M, groups], contiguous
//   column_major_scales   [..., M, groups] with strides (.., 1, M): scales with the same group index are adjacent
//   both attributes       strides (.., 1, align(M, 4)): each such column begins at a multiple of 16 bytes

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/lay_out.h"

namespace weft {

// Throws UserError unless rows of this shape have groups, and scales with the layout that the attributes select. The
// last group of a row may have fewer elements if `may_be_short`.
inline void check_groups(const OpRequest& request, const char* op, const Shape& shape, bool may_be_short) {
  const Attributes& a = request.attributes;
  const std::int64_t group = a.at("group_size").integer();
  USER_CHECK(group > 0 && !shape.empty() && shape.back().is_number() && shape.back().number() > 0,
             "[{}] group_size must be positive, and rows must have columns: they are {} and {}", op, group,
             shape_text(shape));
  USER_CHECK(shape.back().number() % group == 0 || may_be_short, "[{}] rows must be whole groups of {}, but are {}", op,
             group, shape_text(shape));
  const bool column_major = a.at("column_major_scales").boolean();
  USER_CHECK(!column_major || shape.size() >= 2, "[{}] column_major_scales wants a matrix, but the rows are {}", op,
             shape_text(shape));
  USER_CHECK(column_major || !a.at("tma_aligned_scales").boolean(),
             "[{}] tma_aligned_scales are column-major: column_major_scales must be true, but is false", op);
}

// The range of the codes of int8, and the code of the largest magnitude of a group.
inline constexpr double kMinInt8Code = -128, kMaxInt8Code = 127;

// The scales in the layout that the attributes select.
inline Value laid_out_scales(const Value& scales, const Attributes& attributes) {
  if (!attributes.at("column_major_scales").boolean()) return scales;
  const Shape shape = scales.meta().shape;
  const std::size_t last = shape.size() - 1;
  const Dim rows = attributes.at("tma_aligned_scales").boolean() ? align(shape[last - 1], 4) : shape[last - 1];
  Shape strides(shape.size(), Dim(1));
  strides[last] = rows;
  Dim next = rows * shape[last];
  for (std::size_t i = last - 1; i-- > 0; next = next * shape[i]) strides[i] = next;
  return lay_out(scales, strides);
}

}  // namespace weft
