#include "ops/per_token_group_quant_int8.h"

#include "base/error.h"
#include "ir/shape_rules.h"
#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/div.h"
#include "ops/div_scalar.h"
#include "ops/reshape.h"
#include "ops/round.h"

namespace weft {

std::pair<Value, Value> per_token_group_quant_int8(const Value& x, std::int64_t group_size, Scalar eps,
                                                   std::string_view rounding, CallSite site) {
  return call(site, "per_token_group_quant_int8", {x}, int8_group_attributes(group_size, eps, rounding));
}

std::array<GivenAttribute, 3> int8_group_attributes(std::int64_t group_size, Scalar eps, std::string_view rounding) {
  return {{{"group_size", group_size}, {"eps", eps.value}, {"rounding", WordView{rounding}}}};
}

void check_int8_groups(const OpRequest& request, const char* op, const Dim& columns) {
  const std::int64_t group = request.attributes.at("group_size").integer();
  USER_CHECK(group > 0 && columns.is_number() && columns.number() % group == 0,
             "[{}] x must have rows of whole groups of {}, but is {}", op, group, request.operand(0).text());
  const std::string& rounding = request.attributes.at("rounding").word();
  USER_CHECK(rounding == "nearest" || rounding == "toward_zero",
             "[{}] rounding must be nearest or toward_zero, but is {}", op, rounding);
}

std::pair<Value, Value> quantized_int8_groups(const Value& x, const Attributes& attributes) {
  Values results = call("per_token_group_quant_int8", {x},
                        {{"group_size", attributes.at("group_size")},
                         {"eps", attributes.at("eps")},
                         {"rounding", attributes.at("rounding")}});
  return {results[0], results[1]};
}

}  // namespace weft

OP(per_token_group_quant_int8) {
  op.schema(
        "per_token_group_quant_int8(Tensor x, int group_size, float eps=1e-10, str rounding=nearest) -> (Tensor, "
        "Tensor)")
      .function(&weft::per_token_group_quant_int8);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "per_token_group_quant_int8", "x");
    USER_CHECK(x.rank() >= 1 && x.is_contiguous(),
               "[per_token_group_quant_int8] x must have contiguous rows, but is {}", x.text());
    check_int8_groups(request, "per_token_group_quant_int8", x.shape.back());
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    constexpr double kMaxCode = 127, kMinCode = -128;
    const std::int64_t group = a.at("group_size").integer();
    Shape grouped = v[0].meta().shape;
    grouped.back() = grouped.back().number() / group;
    Shape scales = grouped;
    grouped.push_back(group);
    const Value x = reshape(cast(v[0], DType::f32), grouped);
    const Value scale = div_scalar(clamp(amax(abs(x)), a.at("eps").real(), std::nullopt), kMaxCode);
    Value codes = clamp(div(x, scale), kMinCode, kMaxCode);
    if (a.at("rounding").word() == "nearest") codes = round(codes);
    return Values{reshape(cast(codes, DType::i8), v[0].meta().shape), reshape(scale, scales)};
  });
  op.quantizes(int8_dynamic_group(32), {{"group_size", 32}});
  op.sample({{"x", {5, 96}}}, {{"group_size", 32}});
  op.sample({{"x", {1, 576}}}, {{"group_size", 32}});
  op.sample({{"x", {3, 128}}}, {{"group_size", 64}, {"rounding", EnumWord{"toward_zero"}}});
  op.tolerance(DType::i8, {});
  op.tolerance(DType::f32, {});
}
