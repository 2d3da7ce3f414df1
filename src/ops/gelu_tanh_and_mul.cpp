#include "ops/gelu_tanh_and_mul.h"

#include "ir/op.h"
#include "ops/gated.h"
#include "ops/gelu_tanh.h"
#include "ops/mul.h"

namespace weft {

Value gelu_tanh_and_mul(const Value& x, CallSite site) { return call(site, "gelu_tanh_and_mul", {x}, {})[0]; }

}  // namespace weft

OP(gelu_tanh_and_mul) {
  op.schema("gelu_tanh_and_mul(Tensor x) -> Tensor").function(&weft::gelu_tanh_and_mul);
  op.checks([](const OpRequest& request) { check_gated(request, "gelu_tanh_and_mul"); });
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const auto [gate, up] = halves_of(v[0]);
    return Values{mul(gelu_tanh(gate), up)};
  });
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {1, 3072}}});
  op.sample({{"x", {3, 14}}});
}
