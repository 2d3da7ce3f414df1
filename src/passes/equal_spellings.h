#pragma once

// Rewrites the spellings of a quantization by groups to one spelling, so that `raise` compares graph and meaning node
// by node. Every rewrite keeps the bits of all results, except that the sign of a NaN may change: a NaN is compared as
// NaN.
//
//   abs(reshape(x)), cast first       for casts, views and magnitudes in another order
//   abs(x)                            for maximum(x, -x) of which only the largest is used
//   clamp(x, min, max)                for maximum and minimum with a constant, and for two clamps
//   div_scalar(clamp(m), k)           for clamp(div_scalar(m, k)): division rounds monotonically
//   div(x, s)                         for mul(x, reciprocal(s)) where s is a power of two
//   round(clamp(x))                   for clamp(round(x)) with integer bounds
//   x                                 for a clamp that changes nothing: the operand is in its range, or the values are
//                                     divided by a scale of their own largest magnitude and rounded to codes after it

#include "passes/pass.h"

namespace weft {

// Whether groups are quantized to this dtype.
bool is_code(DType dtype);

// Whether the graph has the ops that every quantization by groups has. Other graphs are left as they are.
bool may_quantize_groups(const Graph& graph);

// The least normal f32. A scale that is no less than this is not zero, and its reciprocal is finite.
inline constexpr double kLeastNormal = 0x1p-126;

// A number that no element of an f32 value is below, unless it is NaN. Where it is 0 or more, no element is -0.
double lower_bound(const GraphValue* value);

// The graph is at stage pure.
void spell_alike(Graph& graph, PassContext& context);

}  // namespace weft
