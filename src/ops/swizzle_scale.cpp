#include "ops/swizzle_scale.h"

#include "base/error.h"
#include "ir/op.h"

namespace weft {

Value swizzle_scale(const Value& x, CallSite site) { return call(site, "swizzle_scale", {x}, {})[0]; }

}  // namespace weft

OP(swizzle_scale) {
  op.schema("swizzle_scale(Tensor x) -> Tensor").function(&weft::swizzle_scale);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    USER_CHECK(x.is_tensor() && x.rank() == 2 && x.packed.empty() && bytes_of(x.dtype, 2) == 2,
               "[swizzle_scale] x must be a matrix of one-byte elements, but is {}", x.text());
    return std::vector<Meta>{Meta::tensor(x.dtype, {1, align(x.shape[0], 128), align(x.shape[1], 4)})};
  });
  op.exact();
  op.sample({{"x", {5, 6}, DType::f8e4m3}});
  op.sample({{"x", {200, 12}, DType::f8e8m0, Fill::positive}});
}
