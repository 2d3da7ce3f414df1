#include "ops/scaled_quantize.h"

#include "ir/shape_rules.h"
#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/fp8_quant.h"
#include "ops/reshape.h"

namespace weft {
namespace {

// Returns [M / rows, rows, N / columns, columns]; throws UserError when the blocks do not fill x.
Shape blocked_shape(const Meta& x, const Shape& group_shape) {
  require_floating(x, "scaled_quantize", "x");
  USER_CHECK(x.rank() == 2 && group_shape.size() == 2,
             "[scaled_quantize] wanted a matrix and a group_shape of rows and columns, but x is {} and group_shape {}",
             x.text(), shape_text(group_shape));
  Shape blocked;
  for (std::size_t i = 0; i < 2; ++i) {
    const Dim& dim = x.shape[i];
    const Dim extent = group_shape[i] == Dim(-1) ? dim : group_shape[i];
    const bool fills =
        extent == dim || extent == Dim(1) ||
        (dim.is_number() && extent.is_number() && extent.number() > 0 && dim.number() % extent.number() == 0);
    USER_CHECK(fills, "[scaled_quantize] x must be whole blocks of {}, but is {}", shape_text(group_shape), x.text());
    blocked.push_back(extent == dim ? Dim(1) : extent == Dim(1) ? dim : Dim(dim.number() / extent.number()));
    blocked.push_back(extent);
  }
  return blocked;
}

}  // namespace

std::pair<Value, Value> scaled_quantize(const Value& x, Shape group_shape, DType dtype, CallSite site) {
  return call(site, "scaled_quantize", {x}, {{"group_shape", group_shape}, {"dtype", dtype}});
}

}  // namespace weft

OP(scaled_quantize) {
  op.schema("scaled_quantize(Tensor x, int[] group_shape, ScalarType dtype=f8e4m3) -> (Tensor, Tensor)")
      .function(&weft::scaled_quantize);
  op.checks([](const OpRequest& request) {
    blocked_shape(request.operand(0), request.attributes.at("group_shape").as_shape());
    check_fp8_dtype(request.attributes.at("dtype").dtype(), "scaled_quantize", "dtype");
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    constexpr double kLeast = 1e-12;
    const DType dtype = a.at("dtype").dtype();
    const Shape blocked = blocked_shape(v[0].meta(), a.at("group_shape").as_shape());
    const Value x = reshape(cast(v[0], DType::f32), blocked);
    const Value magnitude = clamp(amax(amax(abs(x), 3), 1), kLeast, std::nullopt);
    const Value factor = mul_scalar(reciprocal(magnitude), fp8_limit(dtype));
    return Values{reshape(fp8_codes(mul(x, factor), dtype), v[0].meta().shape),
                  reshape(reciprocal(factor), {blocked[0], blocked[2]})};
  });
  op.rows_of(nullptr);  // rows of a block share its scale
  op.sample({{"x", {5, 96}}}, {{"group_shape", Attribute::shape({1, 32})}});
  op.sample({{"x", {64, 96}}}, {{"group_shape", Attribute::shape({32, 32})}, {"dtype", DType::f8e4m3fnuz}});
  op.sample({{"x", {6, 40}}}, {{"group_shape", Attribute::shape({-1, 1})}});
  op.tolerance(DType::f8e4m3, {});
  op.tolerance(DType::f8e4m3fnuz, {});
  op.tolerance(DType::f32, {});
}
