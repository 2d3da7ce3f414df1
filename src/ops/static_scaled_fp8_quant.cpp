#include "ops/static_scaled_fp8_quant.h"

#include "base/error.h"
#include "ir/shape_rules.h"
#include "ops/fp8_quant.h"
#include "ops/reshape.h"
#include "ops/spread_blocks.h"

namespace weft {
namespace {

// The extent of a group along one dim; a stated -1 means the whole dim.
Dim group_extent(const Dim& stated, const Dim& dim) { return stated == Dim(-1) ? dim : stated; }

// Returns the number of groups along a dim; nothing when the groups do not fill it, or when this is unknown.
std::optional<Dim> group_count(const Dim& dim, const Dim& extent) {
  if (dim == extent) return Dim(1);
  if (extent == Dim(1)) return dim;
  if (!dim.is_number() || !extent.is_number() || extent.number() <= 0 || dim.number() % extent.number() != 0)
    return std::nullopt;
  return dim.number() / extent.number();
}

struct Groups {
  Shape extent;  // of one group: rows, columns
  Shape count;   // number of groups: along the rows, along the columns
};

std::optional<Groups> groups_of(const Shape& x, const Shape& stated) {
  Groups groups;
  for (std::size_t i = 0; i < 2; ++i) {
    groups.extent.push_back(group_extent(stated[i], x[i]));
    const std::optional<Dim> count = group_count(x[i], groups.extent[i]);
    if (!count) return std::nullopt;
    groups.count.push_back(*count);
  }
  return groups;
}

// Returns the extent of a group so that `count` groups fill `dim`; 0 when no extent does.
Dim extent_of(const Dim& dim, const Dim& count) {
  if (count == Dim(1)) return dim;
  if (count == dim) return 1;
  const bool divides = dim.is_number() && count.is_number() && count.number() > 0 && dim.number() % count.number() == 0;
  return divides ? dim.number() / count.number() : 0;
}

// Returns the groups that a scale of rank 1 or 2 applies to; throws UserError when they do not fit x.
Groups checked_groups(const Shape& x, const Meta& scale, const Attribute& group_shape, const char* op) {
  USER_CHECK(x.size() == 2 && scale.rank() <= 2, "[{}] scale must be one number, or x a matrix, but they are {} and {}",
             op, scale.text(), shape_text(x));
  USER_CHECK(scale.rank() == 2 || !group_shape.is_none(), "[{}] a scale {} needs a group_shape", op, scale.text());
  Shape stated;
  if (group_shape.is_none()) {
    stated = {extent_of(x[0], scale.shape[0]), extent_of(x[1], scale.shape[1])};
  } else {
    stated = group_shape.as_shape();
  }
  USER_CHECK(stated.size() == 2, "[{}] group_shape must be rows and columns, but is {}", op, shape_text(stated));
  const std::optional<Groups> groups = groups_of(x, stated);
  USER_CHECK(groups.has_value(), "[{}] groups must fill {}, but are {}; the scale is {}", op, shape_text(x),
             shape_text(stated), scale.text());
  const Shape& count = groups->count;
  const bool fits = scale.rank() == 2
                        ? scale.shape == count
                        : (count[0] == Dim(1) || count[1] == Dim(1)) && scale.shape[0] == element_count(count);
  USER_CHECK(fits, "[{}] scale must be {} for groups of {} in {}, but is {}", op, shape_text(count),
             shape_text(groups->extent), shape_text(x), scale.text());
  return *groups;
}

// Returns the scale in a shape that broadcasts over x.
Value spread_scale(const Value& scale, const Shape& x, const Attribute& group_shape) {
  if (is_one_scale(scale.meta())) return reshape(scale, {1});
  const Groups groups = checked_groups(x, scale.meta(), group_shape, "static_scaled_fp8_quant");
  const Value matrix = scale.rank() == 2 ? scale : reshape(scale, groups.count);
  const auto spreads = [&](std::size_t i) { return groups.count[i] == Dim(1) || groups.extent[i] == Dim(1); };
  if (spreads(0) && spreads(1)) return matrix;
  Shape shape = x, block = groups.extent;
  for (std::size_t i = 0; i < 2; ++i)
    if (groups.count[i] == Dim(1)) shape[i] = block[i] = 1;  // one group broadcasts, even when the dim is a symbol
  return spread_blocks(matrix, shape, block);
}

}  // namespace

Value static_scaled_fp8_quant(const Value& x, const Value& scale, std::optional<Shape> group_shape, DType dtype,
                              CallSite site) {
  return call(site, "static_scaled_fp8_quant", {x, scale}, {{"group_shape", group_shape}, {"dtype", dtype}})[0];
}

void check_static_fp8(const OpRequest& request, const char* op, const Shape& shape, std::size_t scale) {
  check_fp8_dtype(request.attributes.at("dtype").dtype(), op, "dtype");
  const Meta& meta = request.operand(scale);
  USER_CHECK(meta.is_tensor() && meta.dtype == DType::f32, "[{}] scale must be of f32, but is {}", op, meta.text());
  if (!is_one_scale(meta)) checked_groups(shape, meta, request.attributes.at("group_shape"), op);
}

}  // namespace weft

OP(static_scaled_fp8_quant) {
  op.schema(
        "static_scaled_fp8_quant(Tensor x, Tensor scale, int[]? group_shape=None, ScalarType dtype=f8e4m3) -> Tensor")
      .function(&weft::static_scaled_fp8_quant);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "static_scaled_fp8_quant", "x");
    check_static_fp8(request, "static_scaled_fp8_quant", x.shape, 1);
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Value scale = spread_scale(v[1], v[0].meta().shape, a.at("group_shape"));
    const Value scaled = divided_by_scale(cast(v[0], DType::f32), scale, "reciprocal");
    return Values{fp8_codes(scaled, a.at("dtype").dtype())};
  });
  for (const DType dtype : {DType::f8e4m3, DType::f8e4m3fnuz})
    op.quantizes(fp8_static_tensor(dtype), {{"group_shape", Attribute()}, {"dtype", dtype}});
  op.sample({{"x", {5, 96}}, {"scale", {1}, DType::f32, Fill::codes}});
  op.sample({{"x", {3, 64}}, {"scale", {}, DType::f32, Fill::codes}}, {{"dtype", DType::f8e4m3fnuz}});
  op.sample({{"x", {5, 96}}, {"scale", {5, 3}, DType::f32, Fill::codes}});
  op.sample({{"x", {4, 64}}, {"scale", {64}, DType::f32, Fill::codes}}, {{"group_shape", Attribute::shape({-1, 1})}});
  op.sample({{"x", {4, 64}}, {"scale", {4}, DType::f32, Fill::codes}}, {{"group_shape", Attribute::shape({1, -1})}});
  op.sample({{"x", {4, 96}}, {"scale", {1, 3}, DType::f32, Fill::codes}},
            {{"group_shape", Attribute::shape({-1, 32})}});
  op.tolerance(DType::f8e4m3, {});
  op.tolerance(DType::f8e4m3fnuz, {});
}
