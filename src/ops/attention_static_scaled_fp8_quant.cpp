#include "ops/attention_static_scaled_fp8_quant.h"

#include "ops/attention_quant.h"

namespace weft {

Value attention_static_scaled_fp8_quant(const Value& query, const Value& kv, const Value& batch,
                                        const Value& output_scale, Scalar scale, std::optional<std::int64_t> window,
                                        std::optional<Shape> group_shape, DType dtype, CallSite site) {
  return call(site, "attention_static_scaled_fp8_quant", {query, kv, batch, output_scale},
              {{"scale", scale.value}, {"window", window}, {"group_shape", group_shape}, {"dtype", dtype}})[0];
}

}  // namespace weft

OP(attention_static_scaled_fp8_quant) {
  weft::QuantEpilogue epilogue = weft::static_fp8_epilogue();
  // The name `scale` is already the factor of attention's scores.
  epilogue.tensors = ", Tensor output_scale";
  for (weft::Sample& sample : epilogue.samples) sample.tensors[0].name = "output_scale";
  weft::define_attention_quant(op, "attention_static_scaled_fp8_quant", epilogue);
  op.function(&weft::attention_static_scaled_fp8_quant);
}
