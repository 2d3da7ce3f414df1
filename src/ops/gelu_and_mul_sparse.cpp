#include "ops/gelu_and_mul_sparse.h"

#include "base/error.h"
#include "ir/op.h"
#include "ops/add.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/gated.h"
#include "ops/gelu.h"
#include "ops/gelu_tanh.h"
#include "ops/mean.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/slice.h"
#include "ops/sqrt.h"
#include "ops/sub.h"

namespace weft {

Value gelu_and_mul_sparse(const Value& x, double std_multiplier, std::string_view approximate, CallSite site) {
  return call(site, "gelu_and_mul_sparse", {x},
              {{"std_multiplier", std_multiplier}, {"approximate", WordView{approximate}}})[0];
}

}  // namespace weft

OP(gelu_and_mul_sparse) {
  op.schema("gelu_and_mul_sparse(Tensor x, float std_multiplier, str approximate=erf) -> Tensor")
      .function(&weft::gelu_and_mul_sparse);
  op.checks([](const OpRequest& request) {
    check_gated(request, "gelu_and_mul_sparse");
    const std::string& approximate = request.attributes.at("approximate").word();
    USER_CHECK(approximate == "erf" || approximate == "tanh",
               "[gelu_and_mul_sparse] approximate must be erf or tanh, but is {}", approximate);
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const std::int64_t half = v[0].dim(-1).number() / 2;
    const Value gate = slice(v[0], -1, 0, half), up = slice(v[0], -1, half, 2 * half);
    const Value wide = cast(gate, DType::f64);  // torch sums deviations in f64
    const Value average = mean(wide);
    const Value centred = sub(wide, average);
    const Value deviation = cast(sqrt(mean(mul(centred, centred))), v[0].dtype());
    const Value cut = add(cast(average, v[0].dtype()), mul_scalar(deviation, a.at("std_multiplier").real()));
    const Value passed = clamp(sub(gate, cut), 0.0, std::nullopt);
    return Values{mul(a.at("approximate").word() == "tanh" ? gelu_tanh(passed) : gelu(passed), up)};
  });
  op.sample({{"x", {5, 96}}}, {{"std_multiplier", 1.5}});
  op.sample({{"x", {3, 200}}}, {{"std_multiplier", 0.25}, {"approximate", EnumWord{"tanh"}}});
}
