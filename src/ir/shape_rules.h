#pragma once

// Shape rules that many primitives share. Each throws UserError in the form `[op] y must be .., but is ..`.

#include "ir/op.h"

namespace weft {

// x and y have the same dtype. Two dims are compatible when they are equal, one is the literal 1, or one is missing in
// front. A symbol is not broadcast, even if its value is 1.
std::vector<Meta> broadcast_rule(const OpRequest& request, const char* op);

// One floating tensor; the result has its shape.
std::vector<Meta> pointwise_rule(const OpRequest& request, const char* op);

// Strides that view the same memory with the shape `to`; nothing when a dim of `to` would span a gap. The element
// counts must be equal.
std::optional<Shape> view_strides(const Meta& from, const Shape& to);

// UserError unless `meta` is a tensor of a plain floating dtype.
void require_floating(const Meta& meta, const char* op, const char* parameter);

// Whether `scale` is the single scale of a whole tensor: one element, of shape [1] or [].
bool is_one_scale(const Meta& scale);

// The axis as an index from 0; a negative axis counts from the end. UserError when the tensor has no such axis.
int checked_axis(std::int64_t axis, const Meta& meta, const char* op);

// Whether a product or quotient with this number rounds nothing; overflow and underflow are part of what is computed.
bool is_power_of_two(double value);

}  // namespace weft
