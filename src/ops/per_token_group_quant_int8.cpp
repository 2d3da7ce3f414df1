#include "ops/per_token_group_quant_int8.h"

#include <fmt/core.h>

#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/div.h"
#include "ops/div_scalar.h"
#include "ops/group_quant.h"
#include "ops/reshape.h"
#include "ops/round.h"

namespace weft {
namespace {

constexpr const char* kGroupInt8 = "per_token_group_quant_int8";

}  // namespace

std::pair<Value, Value> per_token_group_quant_int8(const Value& x, std::int64_t group_size, Scalar eps,
                                                   std::string_view rounding, bool column_major_scales,
                                                   bool tma_aligned_scales, Scalar minimum_scale, CallSite site) {
  return call(site, kGroupInt8, {x},
              {{"group_size", group_size},
               {"eps", eps.value},
               {"rounding", WordView{rounding}},
               {"column_major_scales", column_major_scales},
               {"tma_aligned_scales", tma_aligned_scales},
               {"minimum_scale", minimum_scale.value}});
}

void check_group_int8(const OpRequest& request, const char* op, const Shape& shape) {
  check_groups(request, op, shape, false);
  const std::string& rounding = request.attributes.at("rounding").word();
  USER_CHECK(rounding == "nearest" || rounding == "toward_zero",
             "[{}] rounding must be nearest or toward_zero, but is {}", op, rounding);
}

}  // namespace weft

OP(per_token_group_quant_int8) {
  const std::string schema =
      fmt::format("{}(Tensor x, int group_size, {}) -> (Tensor, Tensor)", kGroupInt8, kGroupInt8Attributes);
  op.schema(schema.c_str()).function(&weft::per_token_group_quant_int8);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, kGroupInt8, "x");
    USER_CHECK(x.rank() >= 1 && x.is_contiguous(), "[{}] x must have contiguous rows, but is {}", kGroupInt8, x.text());
    check_group_int8(request, kGroupInt8, x.shape);
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const std::int64_t group = a.at("group_size").integer();
    Shape grouped = v[0].meta().shape;
    grouped.back() = grouped.back().number() / group;
    Shape scales = grouped;
    grouped.push_back(group);
    const Value x = reshape(cast(v[0], DType::f32), grouped);
    Value scale = div_scalar(clamp(amax(abs(x)), a.at("eps").real(), std::nullopt), kMaxInt8Code);
    // Scales are at least 0 without this.
    if (const double least = a.at("minimum_scale").real(); least > 0) scale = clamp(scale, least, std::nullopt);
    Value codes = clamp(div(x, scale), kMinInt8Code, kMaxInt8Code);
    if (a.at("rounding").word() == "nearest") codes = round(codes);
    return Values{reshape(cast(codes, DType::i8), v[0].meta().shape), laid_out_scales(reshape(scale, scales), a)};
  });
  for (const std::int64_t group : {32, 64, 128}) op.quantizes(int8_dynamic_group(group), {{"group_size", group}});
  op.sample({{"x", {5, 96}}}, {{"group_size", 32}});
  op.sample({{"x", {1, 576}}}, {{"group_size", 32}});
  op.sample({{"x", {3, 128}}}, {{"group_size", 64}, {"rounding", EnumWord{"toward_zero"}}});
  op.sample({{"x", {2, 3, 100}}}, {{"group_size", 50}, {"rounding", EnumWord{"toward_zero"}}});
  op.sample({{"x", {5, 256}}}, {{"group_size", 64}, {"column_major_scales", true}});
  op.sample({{"x", {6, 256}}},
            {{"group_size", 128}, {"column_major_scales", true}, {"tma_aligned_scales", true}, {"eps", 0.0}});
  op.sample({{"x", {2, 3, 128}}}, {{"group_size", 64}, {"column_major_scales", true}, {"minimum_scale", 0.01}});
  op.tolerance(DType::i8, {});
  op.tolerance(DType::f32, {});
}
