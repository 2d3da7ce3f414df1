#include "ops/pack_scales.h"

#include "base/error.h"
#include "ir/op.h"

namespace weft {

Value pack_scales(const Value& x, CallSite site) { return call(site, "pack_scales", {x}, {})[0]; }

}  // namespace weft

OP(pack_scales) {
  op.schema("pack_scales(Tensor x) -> Tensor").function(&weft::pack_scales);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    USER_CHECK(x.is_tensor() && x.rank() == 2 && x.dtype == DType::f8e8m0,
               "[pack_scales] x must be a matrix of f8e8m0, but is {}", x.text());
    return std::vector<Meta>{
        Meta::strided(DType::i32, {x.shape[0], ceildiv(x.shape[1], 4)}, {1, align(x.shape[0], 4)})};
  });
  op.exact();
  op.sample({{"x", {5, 6}, DType::f8e8m0, Fill::positive}});
  op.sample({{"x", {4, 8}, DType::f8e8m0, Fill::positive}});
}
