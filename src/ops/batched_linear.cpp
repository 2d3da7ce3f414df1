#include "ops/batched_linear.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value batched_linear(const Value& x, const Value& weight, CallSite site) {
  return call(site, "batched_linear", {x, weight}, {})[0];
}

}  // namespace weft

OP(batched_linear) {
  op.schema("batched_linear(Tensor x, Tensor weight) -> Tensor").function(&weft::batched_linear);
  op.gives([](const OpRequest& request) {
    const Meta &x = request.operand(0), &weight = request.operand(1);
    require_floating(x, "batched_linear", "x");
    USER_CHECK(x.rank() == 3, "[batched_linear] x must be [rows, H, K], but is {}", x.text());
    USER_CHECK(weight.rank() == 3 && weight.shape[0] == x.shape[1] && weight.shape[2] == x.shape[2],
               "[batched_linear] weight must be [{}, N, {}] to match x: {}, but is {}", x.shape[1].text(),
               x.shape[2].text(), x.text(), weight.text());
    return std::vector<Meta>{Meta::tensor(x.dtype, {x.shape[0], x.shape[1], weight.shape[1]})};
  });
  op.sample({{"x", {5, 3, 64}}, {"weight", {3, 48, 64}}});
  op.sample({{"x", {140, 2, 40}}, {"weight", {2, 33, 40}, DType::bf16}});
  op.sample({{"x", {1, 4, 64}}, {"weight", {4, 24, 64}, DType::q8_0}});
  op.sample({{"x", {6, 1, 32}}, {"weight", {1, 20, 32}}});
  op.sample({{"x", {3, 2, 256}}, {"weight", {2, 40, 256}, DType::iq2_s}});
  // The results sum 96 products of magnitude about 1, in any order. Products of bf16 may take subnormal numbers for
  // zeros.
  op.tolerance(DType::f32, {.absolute = 1e-4, .relative = 1e-4});
}
