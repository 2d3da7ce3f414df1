#include "ops/attention_scaled_fp4_quant.h"

#include "ops/attention_quant.h"

namespace weft {

std::pair<Value, Value> attention_scaled_fp4_quant(const Value& query, const Value& kv, const Value& batch,
                                                   const Value& global_scale, Scalar scale,
                                                   std::optional<std::int64_t> window, bool swizzled_scales,
                                                   CallSite site) {
  return call(site, "attention_scaled_fp4_quant", {query, kv, batch, global_scale},
              {{"scale", scale.value}, {"window", window}, {"swizzled_scales", swizzled_scales}});
}

}  // namespace weft

OP(attention_scaled_fp4_quant) {
  weft::define_attention_quant(op, "attention_scaled_fp4_quant", weft::nvfp4_epilogue());
  op.function(&weft::attention_scaled_fp4_quant);
}
