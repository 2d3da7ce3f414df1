#include "ops/per_token_group_quant_fp8.h"

#include <fmt/core.h>

#include "ir/shape_rules.h"
#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/concat.h"
#include "ops/fp8_quant.h"
#include "ops/group_quant.h"
#include "ops/reshape.h"
#include "ops/round_to_power_of_two.h"
#include "ops/slice.h"

namespace weft {
namespace {

constexpr const char* kGroupFp8 = "per_token_group_quant_fp8";

// Quantizes rows of whole groups in f32. The codes have the shape of x, the scales [..., groups].
std::pair<Value, Value> quantized_groups(const Value& x, const Value& scale_ub, std::int64_t group,
                                         const Attributes& a) {
  const DType dtype = a.at("dtype").dtype();
  const bool holds_scale = a.at("scale_ub_of").word() == "scale";
  Shape scales = x.meta().shape;
  scales.back() = scales.back().number() / group;
  Shape grouped = scales;
  grouped.push_back(group);
  const Value values = reshape(x, grouped);
  Value magnitude = clamp(amax(abs(values)), a.at("eps").real(), std::nullopt);
  if (!holds_scale) magnitude = held_to(scale_ub, magnitude);
  Value scale = fp8_scale(magnitude, dtype, a.at("scale_by").word());
  if (holds_scale) scale = held_to(scale_ub, scale);
  if (a.at("use_ue8m0").boolean())
    scale = round_to_power_of_two(clamp(scale, a.at("ue8m0_minimum").real(), std::nullopt));
  scale = clamp(scale, a.at("minimum_scale").real(), std::nullopt);
  return {reshape(fp8_codes(div(values, scale), dtype), x.meta().shape), reshape(scale, scales)};
}

// The same for rows whose last group is short: concatenates the results of the whole groups and of the rest.
std::pair<Value, Value> quantized_with_rest(const Value& x, const Value& scale_ub, std::int64_t group,
                                            const Attributes& a) {
  const std::int64_t columns = x.dim(-1).number(), whole = columns / group * group;
  const auto [rest, rest_scale] = quantized_groups(slice(x, -1, whole, columns), scale_ub, columns - whole, a);
  if (whole == 0) return {rest, rest_scale};
  const auto [codes, scale] = quantized_groups(slice(x, -1, 0, whole), scale_ub, group, a);
  return {concat({codes, rest}, -1), concat({scale, rest_scale}, -1)};
}

}  // namespace

std::pair<Value, Value> per_token_group_quant_fp8(const Value& x, const Value& scale_ub, std::int64_t group_size,
                                                  Scalar eps, bool use_ue8m0, bool column_major_scales,
                                                  bool tma_aligned_scales, Scalar minimum_scale, Scalar ue8m0_minimum,
                                                  std::string_view scale_by, std::string_view scale_ub_of,
                                                  bool short_last_group, DType dtype, CallSite site) {
  return call(site, kGroupFp8, {x, scale_ub},
              {{"group_size", group_size},
               {"eps", eps.value},
               {"use_ue8m0", use_ue8m0},
               {"column_major_scales", column_major_scales},
               {"tma_aligned_scales", tma_aligned_scales},
               {"minimum_scale", minimum_scale.value},
               {"ue8m0_minimum", ue8m0_minimum.value},
               {"scale_by", WordView{scale_by}},
               {"scale_ub_of", WordView{scale_ub_of}},
               {"short_last_group", short_last_group},
               {"dtype", dtype}});
}

void check_group_fp8(const OpRequest& request, const char* op, const Shape& shape, std::size_t scale_ub) {
  const Attributes& a = request.attributes;
  check_fp8_dtype(a.at("dtype").dtype(), op, "dtype");
  check_word(request, op, "scale_by", {"division", "reciprocal"});
  check_word(request, op, "scale_ub_of", {"magnitude", "scale"});
  check_scale_ub(request, op, scale_ub);
  check_groups(request, op, shape, a.at("short_last_group").boolean());
}

}  // namespace weft

OP(per_token_group_quant_fp8) {
  const std::string schema = fmt::format("{}(Tensor x, Tensor? scale_ub=None, int group_size, {}) -> (Tensor, Tensor)",
                                         kGroupFp8, kGroupFp8Attributes);
  op.schema(schema.c_str()).function(&weft::per_token_group_quant_fp8);
  op.checks([](const OpRequest& request) {
    require_floating(request.operand(0), kGroupFp8, "x");
    check_group_fp8(request, kGroupFp8, request.operand(0).shape, 1);
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const std::int64_t group = a.at("group_size").integer();
    const Value x = cast(v[0], DType::f32);
    const bool whole = x.dim(-1).number() % group == 0;
    const auto [codes, scale] = whole ? quantized_groups(x, v[1], group, a) : quantized_with_rest(x, v[1], group, a);
    return Values{codes, laid_out_scales(scale, a)};
  });
  for (const DType dtype : {DType::f8e4m3, DType::f8e4m3fnuz})
    for (const std::int64_t group : {64, 128})
      op.quantizes(fp8_dynamic_group(dtype, group), {{"group_size", group}, {"dtype", dtype}});
  op.sample({{"x", {5, 256}}}, {{"group_size", 64}});
  op.sample({{"x", {1, 576}}}, {{"group_size", 64}, {"scale_by", EnumWord{"reciprocal"}}});
  op.sample({{"x", {5, 256}}}, {{"group_size", 64}, {"use_ue8m0", true}});
  op.sample({{"x", {5, 256}}}, {{"group_size", 64}, {"use_ue8m0", true}, {"column_major_scales", true}});
  op.sample({{"x", {6, 256}}}, {{"group_size", 128}, {"column_major_scales", true}, {"tma_aligned_scales", true}});
  op.sample({{"x", {2, 3, 128}}}, {{"group_size", 64}, {"column_major_scales", true}, {"dtype", DType::f8e4m3fnuz}});
  op.sample({{"x", {3, 100}}}, {{"group_size", 64}, {"short_last_group", true}, {"minimum_scale", 0.01}, {"eps", 0.0}});
  op.sample({{"x", {3, 46}}}, {{"group_size", 32}, {"short_last_group", true}});
  op.sample({{"x", {5, 256}}, {"scale_ub", {}, DType::f32, Fill::positive}}, {{"group_size", 64}});
  op.sample({{"x", {3, 100}}, {"scale_ub", {1}, DType::f32, Fill::codes}},
            {{"group_size", 64}, {"short_last_group", true}, {"scale_ub_of", EnumWord{"scale"}}});
  op.tolerance(DType::f8e4m3, {});
  op.tolerance(DType::f8e4m3fnuz, {});
  op.tolerance(DType::f32, {});
}
