#include "ops/silu_and_mul.h"

#include "base/error.h"
#include "ir/op.h"
#include "ops/mul.h"
#include "ops/silu.h"
#include "ops/slice.h"

namespace weft {

Value silu_and_mul(Value x) { return call("silu_and_mul", {x}, {})[0]; }

}  // namespace weft

OP(silu_and_mul) {
  op.schema("silu_and_mul(Tensor x) -> Tensor").function(&weft::silu_and_mul);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    USER_CHECK(x.rank() >= 1 && x.shape.back().is_number() && x.shape.back().number() % 2 == 0,
               "[silu_and_mul] x must have an even number of columns, but is {}", x.text());
  });
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const std::int64_t half = v[0].dim(-1).number() / 2;
    return Values{mul(silu(slice(v[0], -1, 0, half)), slice(v[0], -1, half, 2 * half))};
  });
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {1, 3072}}});
  op.sample({{"x", {3, 14}}});
}
