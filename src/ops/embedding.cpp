#include "ops/embedding.h"

#include "ir/op.h"
#include "ops/cast.h"
#include "ops/index_select.h"

namespace weft {

Value embedding(const Value& ids, const Value& weight, DType dtype, CallSite site) {
  return call(site, "embedding", {ids, weight}, {{"dtype", dtype}})[0];
}

}  // namespace weft

OP(embedding) {
  op.schema("embedding(Tensor ids, Tensor weight, ScalarType dtype=f32) -> Tensor").function(&weft::embedding);
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    return Values{cast(index_select(v[1], v[0]), a.at("dtype").dtype())};
  });
  op.gathers("weight", "ids").exact();
  op.sample({{"ids", {4}, DType::i64, Fill::indices, 40}, {"weight", {40, 64}}});
  op.sample({{"ids", {4}, DType::i32, Fill::indices, 40}, {"weight", {40, 64}, DType::q8_0}});
  op.sample({{"ids", {4}, DType::i32, Fill::indices, 40}, {"weight", {40, 256}, DType::q6_k}});
  op.sample({{"ids", {1}, DType::i64, Fill::indices, 40}, {"weight", {40, 64}, DType::q4_1}}, {{"dtype", DType::bf16}});
}
