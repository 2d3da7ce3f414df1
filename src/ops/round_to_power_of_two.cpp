#include "ops/round_to_power_of_two.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value round_to_power_of_two(const Value& x, std::string_view rounding, CallSite site) {
  return call(site, "round_to_power_of_two", {x}, {{"rounding", WordView{rounding}}})[0];
}

}  // namespace weft

OP(round_to_power_of_two) {
  op.schema("round_to_power_of_two(Tensor x, str rounding=up) -> Tensor").function(&weft::round_to_power_of_two);
  op.gives([](const OpRequest& request) {
    const std::string& rounding = request.attributes.at("rounding").word();
    USER_CHECK(rounding == "up" || rounding == "down", "[round_to_power_of_two] rounding must be up or down, but is {}",
               rounding);
    return pointwise_rule(request, "round_to_power_of_two");
  });
  op.exact();
  op.sample({{"x", {6, 41}}});
  op.sample({{"x", {6, 41}}}, {{"rounding", EnumWord{"down"}}});
}
