#include "ops/mul_and_silu.h"

#include "ir/op.h"
#include "ops/gated.h"
#include "ops/mul.h"
#include "ops/silu.h"

namespace weft {

Value mul_and_silu(const Value& x, CallSite site) { return call(site, "mul_and_silu", {x}, {})[0]; }

}  // namespace weft

OP(mul_and_silu) {
  op.schema("mul_and_silu(Tensor x) -> Tensor").function(&weft::mul_and_silu);
  op.checks([](const OpRequest& request) { check_gated(request, "mul_and_silu"); });
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const auto [up, gate] = halves_of(v[0]);
    return Values{mul(up, silu(gate))};
  });
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {1, 3072}}});
  op.sample({{"x", {3, 14}}});
}
