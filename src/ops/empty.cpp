#include "ops/empty.h"

#include "ir/op.h"

namespace weft {

Value empty(Evaluator& evaluator, Shape shape, DType dtype, CallSite site) {
  return call(site, "empty", {}, {{"shape", shape}, {"dtype", dtype}}, false, &evaluator)[0];
}

}  // namespace weft

OP(empty) {
  op.schema("empty(int[] shape, ScalarType dtype) -> Tensor").function(&weft::empty);
  op.gives([](const OpRequest& request) {
    return std::vector<Meta>{
        Meta::tensor(request.attributes.at("dtype").dtype(), request.attributes.at("shape").as_shape())};
  });
  op.allocation();
  op.sample({}, {{"shape", Attribute::shape({3, 5})}, {"dtype", DType::f32}});
}
