#pragma once

// Shape rules that many primitives share. Each throws UserError in the form `[op] y must be .., but is ..`.

#include "ir/op.h"

namespace weft {

// x and y of one dtype; dims equal, or the literal 1, or missing in front. A symbol that happens to be 1 does not
// spread.
std::vector<Meta> broadcast_rule(const OpRequest& request, const char* op);

// One floating tensor; the result has its shape.
std::vector<Meta> pointwise_rule(const OpRequest& request, const char* op);

// Strides of the same memory under another shape; nothing when a dim of `to` would span a gap. Element counts must be
// equal.
std::optional<Shape> view_strides(const Meta& from, const Shape& to);

// UserError unless `meta` is a tensor of a plain floating dtype.
void require_floating(const Meta& meta, const char* op, const char* parameter);

// Whether it is a tensor's only scale: one element, [1] or [].
bool is_one_scale(const Meta& scale);

// An axis counted from the end when negative; UserError when the tensor has no such axis.
int checked_axis(std::int64_t axis, const Meta& meta, const char* op);

}  // namespace weft
