#include "ops/topk_softmax.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/cast.h"
#include "ops/div.h"
#include "ops/softmax.h"
#include "ops/sum.h"
#include "ops/topk.h"

namespace weft {

std::pair<Value, Value> topk_softmax(const Value& gating_output, std::int64_t topk, bool renormalize, CallSite site) {
  return call(site, "topk_softmax", {gating_output}, {{"topk", topk}, {"renormalize", renormalize}});
}

}  // namespace weft

OP(topk_softmax) {
  op.schema(
        "topk_softmax(Tensor gating_output, int topk, bool renormalize=False) -> "
        "(Tensor topk_weights, Tensor topk_indices)")
      .function(&weft::topk_softmax);
  op.checks([](const OpRequest& request) { require_floating(request.operand(0), "topk_softmax", "gating_output"); });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const auto [chosen, indices] = topk(softmax(cast(v[0], DType::f32)), a.at("topk").integer());
    return Values{a.at("renormalize").boolean() ? div(chosen, sum(chosen)) : chosen, indices};
  });
  op.sample({{"gating_output", {5, 16}}}, {{"topk", 4}});
  op.sample({{"gating_output", {5, 16}}}, {{"topk", 4}, {"renormalize", true}});
  op.sample({{"gating_output", {1, 128}}}, {{"topk", 8}, {"renormalize", true}});
  op.sample({{"gating_output", {3, 4}}}, {{"topk", 1}});
}
