// The ops <front>_<quantizing op>: each front here with each epilogue of quant_epilogue.h. `weft op NAME` prints the
// schema of one.

#include "ir/op_products.h"
#include "ir/shape_rules.h"
#include "ops/cast.h"
#include "ops/fp8_quant.h"
#include "ops/gated.h"
#include "ops/gelu_and_mul.h"
#include "ops/gelu_tanh_and_mul.h"
#include "ops/quant_epilogue.h"
#include "ops/silu_and_mul.h"

namespace weft {
namespace {

// A gate whose result is quantized. With intermediate=input_dtype the result is first rounded to the dtype of x, as if
// the gate and the quantization were two ops. With intermediate=f32 it stays in f32, as in vLLM's fused kernels.
void define_gated_quant(OpDefinition& op, const std::string& name, UnaryFunction gate, const QuantEpilogue& epilogue) {
  const std::string schema =
      fmt::format("{}(Tensor x{}{}, str intermediate=input_dtype{}) -> {}", name, epilogue.tensors, epilogue.required,
                  epilogue.attributes, result_list(epilogue.results));
  op.schema(schema.c_str());
  op.checks([name, check = epilogue.check](const OpRequest& request) {
    check_gated(request, name.c_str());
    check_word(request, name.c_str(), "intermediate", {"input_dtype", "f32"});
    Shape shape = request.operand(0).shape;
    shape.back() = shape.back().number() / 2;
    check(request, name.c_str(), shape, 1);
  });
  op.means([gate, quantize = EpilogueCall(epilogue)](Evaluator&, const Values& v, const Attributes& a) {
    const bool rounds = a.at("intermediate").word() == "input_dtype";
    return quantize(gate(rounds ? v[0] : cast(v[0], DType::f32), CallSite::current()), v.size() > 1 ? v[1] : Value(),
                    a);
  });
  add_epilogue_samples(op, epilogue, {{"x", {5, 384}}}, {});
  add_epilogue_samples(op, epilogue, {{"x", {1, 1152}}}, {{"intermediate", EnumWord{"f32"}}});
}

// rms_norm, whose result is quantized.
void define_rms_norm_quant(OpDefinition& op, const std::string& name, const QuantEpilogue& epilogue) {
  const std::string schema =
      fmt::format("{}(Tensor x, Tensor? weight{}, float epsilon{}, int? variance_size=None{}) -> {}", name,
                  epilogue.tensors, epilogue.required, epilogue.attributes, result_list(epilogue.results));
  op.schema(schema.c_str());
  op.checks([name, check = epilogue.check](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, name.c_str(), "x");
    check(request, name.c_str(), x.shape, 2);
  });
  op.means([quantize = EpilogueCall(epilogue)](Evaluator&, const Values& v, const Attributes& a) {
    const Values normalized =
        call("rms_norm", {v[0], v[1]}, {{"epsilon", a.at("epsilon")}, {"variance_size", a.at("variance_size")}});
    return quantize(normalized[0], v.size() > 2 ? v[2] : Value(), a);
  });
  add_epilogue_samples(op, epilogue, {{"x", {5, 192}}, {"weight", {192}}}, {{"epsilon", 1e-6}});
  add_epilogue_samples(op, epilogue, {{"x", {1, 576}}, {"weight", {576}, DType::f32}},
                       {{"epsilon", 1e-5}, {"variance_size", 64}});
}

// fused_add_rms_norm, whose first result is quantized; the second is returned as it is. x_residual may be donated, and
// then the last result may use its memory. `intermediate` means the same as in fused_add_rms_norm.
void define_fused_add_rms_norm_quant(OpDefinition& op, const std::string& name, const QuantEpilogue& epilogue) {
  const std::string schema = fmt::format(
      "{}(Tensor x, Tensor x_residual, Tensor? weight{}, float epsilon{}, int? variance_size=None, str "
      "intermediate=f32{}) -> {}",
      name, epilogue.tensors, epilogue.required, epilogue.attributes, result_list(epilogue.results + 1));
  op.schema(schema.c_str());
  op.allow_inplace().donates("x_residual", static_cast<int>(epilogue.results));
  op.checks([name, check = epilogue.check](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, name.c_str(), "x");
    check(request, name.c_str(), x.shape, 3);
  });
  op.means([quantize = EpilogueCall(epilogue)](Evaluator&, const Values& v, const Attributes& a) {
    const Values normalized = call("fused_add_rms_norm", {v[0], v[1], v[2]},
                                   {{"epsilon", a.at("epsilon")},
                                    {"variance_size", a.at("variance_size")},
                                    {"intermediate", a.at("intermediate")}});
    Values results = quantize(normalized[0], v.size() > 3 ? v[3] : Value(), a);
    results.push_back(normalized[1]);
    return results;
  });
  add_epilogue_samples(op, epilogue, {{"x", {5, 192}}, {"x_residual", {5, 192}}, {"weight", {192}}},
                       {{"epsilon", 1e-6}});
  add_epilogue_samples(op, epilogue, {{"x", {1, 576}}, {"x_residual", {1, 576}}},
                       {{"epsilon", 1e-5}, {"intermediate", EnumWord{"input_dtype"}}});
  op.tolerance(DType::f16, {});
  op.tolerance(DType::bf16, {});
}

struct Gate {
  const char* name;
  UnaryFunction function;
};
constexpr Gate kGates[] = {
    {"silu_and_mul", &silu_and_mul}, {"gelu_and_mul", &gelu_and_mul}, {"gelu_tanh_and_mul", &gelu_tanh_and_mul}};

}  // namespace
}  // namespace weft

OP_PRODUCT(fused_quant) {
  using namespace weft;
  for (const QuantEpilogue& epilogue : {static_fp8_epilogue(), token_fp8_epilogue(), group_fp8_epilogue(),
                                        token_int8_epilogue(), group_int8_epilogue(), nvfp4_epilogue()}) {
    const auto joined_to = [&](const char* front) { return fmt::format("{}_{}", front, epilogue.op); };
    for (const Gate& gate : kGates)
      add_op(ops, joined_to(gate.name),
             [&](OpDefinition& op) { define_gated_quant(op, joined_to(gate.name), gate.function, epilogue); });
    const std::string norm = joined_to("rms_norm"), sum_norm = joined_to("fused_add_rms_norm");
    add_op(ops, norm, [&](OpDefinition& op) { define_rms_norm_quant(op, norm, epilogue); });
    add_op(ops, sum_norm, [&](OpDefinition& op) { define_fused_add_rms_norm_quant(op, sum_norm, epilogue); });
  }
}
