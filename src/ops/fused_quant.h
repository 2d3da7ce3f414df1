#pragma once

// This file defines the ops <front>_<quantization>. The front is a gated activation, rms_norm or fused_add_rms_norm;
// the tail is an op that quantizes the front's result. A schema lists the tensors of front and tail, then the required
// attributes of both, then the optional ones. The results are the codes, the scales if the tail has any, and the
// residual.

#include <fmt/core.h>

#include "base/error.h"
#include "ir/shape_rules.h"
#include "ops/cast.h"
#include "ops/dynamic_per_token_scaled_fp8_quant.h"
#include "ops/dynamic_per_token_scaled_int8_quant.h"
#include "ops/fp8_quant.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/gated.h"
#include "ops/per_token_group_quant_fp8.h"
#include "ops/rms_norm.h"
#include "ops/scaled_fp4_quant.h"
#include "ops/static_scaled_fp8_quant.h"

namespace weft {

struct QuantTail {
  std::string tensors;     // of its schema, after x: ", Tensor scale"
  std::string required;    // attributes without a default: ", int group_size"
  std::string attributes;  // attributes with a default
  std::size_t results = 2;
  // Throws UserError unless the tail can quantize values of this shape. `operand` is the index of the tail's tensor, if
  // the tail has one.
  void (*check)(const OpRequest&, const char* op, const Shape&, std::size_t operand);
  Values (*apply)(const Value& values, const Value& tensor, const Attributes&);
  std::vector<Sample> samples;  // for rows of at least 192 elements that are whole groups of 32 and of 64

  bool has_tensor() const { return !tensors.empty(); }
};

// Returns an upper bound for magnitudes of about 1, or for the scales that such magnitudes have.
inline SampleTensor sample_scale_ub(bool of_scales) {
  return {"scale_ub", {1}, DType::f32, of_scales ? Fill::codes : Fill::positive};
}

inline QuantTail static_fp8_tail() {
  const SampleTensor scale{"scale", {1}, DType::f32, Fill::codes};
  return {.tensors = ", Tensor scale",
          .attributes = std::string(", ") + kStaticFp8Attributes,
          .results = 1,
          .check = check_static_fp8,
          .apply = [](const Value& values, const Value& scale,
                      const Attributes& a) { return Values{quantized_static_fp8(values, scale, a)}; },
          .samples = {{{scale}, {}}, {{scale}, {{"dtype", DType::f8e4m3fnuz}}}}};
}

inline QuantTail token_fp8_tail() {
  return {.tensors = ", Tensor? scale_ub=None",
          .attributes = std::string(", ") + kTokenFp8Attributes,
          .check = [](const OpRequest& request, const char* op, const Shape&,
                      std::size_t scale_ub) { check_token_fp8(request, op, scale_ub); },
          .apply =
              [](const Value& values, const Value& scale_ub, const Attributes& a) {
                const auto [codes, scale] = quantized_token_fp8(values, scale_ub, a);
                return Values{codes, scale};
              },
          .samples = {{{}, {}}, {{sample_scale_ub(false)}, {{"codes_by", EnumWord{"reciprocal"}}}}}};
}

inline QuantTail group_fp8_tail() {
  return {.tensors = ", Tensor? scale_ub=None",
          .required = ", int group_size",
          .attributes = std::string(", ") + kGroupFp8Attributes,
          .check = check_group_fp8,
          .apply =
              [](const Value& values, const Value& scale_ub, const Attributes& a) {
                const auto [codes, scale] = quantized_group_fp8(values, scale_ub, a);
                return Values{codes, scale};
              },
          .samples = {{{}, {{"group_size", 32}}},
                      {{}, {{"group_size", 64}, {"use_ue8m0", true}, {"column_major_scales", true}}},
                      {{}, {{"group_size", 64}, {"column_major_scales", true}, {"tma_aligned_scales", true}}},
                      {{sample_scale_ub(false)}, {{"group_size", 64}}},
                      {{sample_scale_ub(true)}, {{"group_size", 64}, {"scale_ub_of", EnumWord{"scale"}}}}}};
}

inline QuantTail token_int8_tail() {
  return {.check = [](const OpRequest&, const char*, const Shape&, std::size_t) {},
          .apply =
              [](const Value& values, const Value&, const Attributes&) {
                const auto [codes, scale] = dynamic_per_token_scaled_int8_quant(values);
                return Values{codes, scale};
              },
          .samples = {{{}, {}}}};
}

inline QuantTail nvfp4_tail() {
  const SampleTensor global_scale{"global_scale", {1}, DType::f32, Fill::positive};
  return {.tensors = ", Tensor global_scale",
          .attributes = ", bool swizzled_scales=True",
          .check = check_fp4,
          .apply =
              [](const Value& values, const Value& global_scale, const Attributes& a) {
                const auto [codes, scale] = scaled_fp4_quant(values, global_scale, a.at("swizzled_scales").boolean());
                return Values{codes, scale};
              },
          .samples = {{{global_scale}, {{"swizzled_scales", false}}}, {{global_scale}, {}}}};
}

// Several ops' typed functions pass these attributes on. They refer to the arguments without copying them.
inline std::array<GivenAttribute, 2> norm_attributes(Scalar epsilon, std::optional<std::int64_t> variance_size) {
  return {{{"epsilon", epsilon.value}, {"variance_size", variance_size}}};
}
inline std::array<GivenAttribute, 1> intermediate_attribute(std::string_view intermediate) {
  return {{{"intermediate", WordView{intermediate}}}};
}
inline std::array<GivenAttribute, 2> static_fp8_attributes(const std::optional<Shape>& group_shape, DType dtype) {
  return {{{"group_shape", group_shape}, {"dtype", dtype}}};
}
inline std::array<GivenAttribute, 1> fp4_attributes(bool swizzled_scales) {
  return {{{"swizzled_scales", swizzled_scales}}};
}

// Adds the tail's samples, combined with the front's tensors and attributes, and sets all tolerances to zero.
inline void add_tail_samples(OpDefinition& op, const QuantTail& tail, const std::vector<SampleTensor>& tensors,
                             const NamedAttributes& attributes) {
  for (const Sample& own : tail.samples) {
    std::vector<SampleTensor> all = tensors;
    all.insert(all.end(), own.tensors.begin(), own.tensors.end());
    NamedAttributes both = attributes;
    both.insert(both.end(), own.attributes.begin(), own.attributes.end());
    op.sample(std::move(all), std::move(both));
  }
  for (DType dtype : {DType::f8e4m3, DType::f8e4m3fnuz, DType::f4e2m1, DType::i8, DType::f32}) op.tolerance(dtype, {});
}

inline std::string result_list(std::size_t count) {
  if (count == 1) return "Tensor";
  std::string list = "(Tensor";
  for (std::size_t i = 1; i < count; ++i) list += ", Tensor";
  return list + ")";
}

// <gate>_<tail>: quantizes the gate's result with the tail. The gate's result is rounded to the dtype of x
// (intermediate=input_dtype: exactly the gate followed by the tail) or stays in f32 (intermediate=f32, as in vLLM's
// fused kernels).
inline void define_gated_quant(OpDefinition& op, const char* name, UnaryFunction gate, const QuantTail& tail) {
  const std::string required = tail.required.empty() ? "" : tail.required;
  const std::string schema = fmt::format("{}(Tensor x{}{}, str intermediate=input_dtype{}) -> {}", name, tail.tensors,
                                         required, tail.attributes, result_list(tail.results));
  op.schema(schema.c_str());
  op.checks([name, tail](const OpRequest& request) {
    check_gated(request, name);
    check_word(request, name, "intermediate", {"input_dtype", "f32"});
    Shape shape = request.operand(0).shape;
    shape.back() = shape.back().number() / 2;
    tail.check(request, name, shape, 1);
  });
  op.means([gate, tail](Evaluator&, const Values& v, const Attributes& a) {
    const bool rounds = a.at("intermediate").word() == "input_dtype";
    return tail.apply(gate(rounds ? v[0] : cast(v[0], DType::f32), CallSite::current()),
                      tail.has_tensor() ? v[1] : Value(), a);
  });
  add_tail_samples(op, tail, {{"x", {5, 384}}}, {});
  add_tail_samples(op, tail, {{"x", {1, 1152}}}, {{"intermediate", EnumWord{"f32"}}});
}

// rms_norm_<tail>: quantizes the result of rms_norm with the tail.
inline void define_rms_norm_quant(OpDefinition& op, const char* name, const QuantTail& tail) {
  const std::string schema =
      fmt::format("{}(Tensor x, Tensor? weight{}, float epsilon{}, int? variance_size=None{}) -> {}", name,
                  tail.tensors, tail.required, tail.attributes, result_list(tail.results));
  op.schema(schema.c_str());
  op.checks([name, tail](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, name, "x");
    tail.check(request, name, x.shape, 2);
  });
  op.means([tail](Evaluator&, const Values& v, const Attributes& a) {
    const Values normalized =
        call("rms_norm", {v[0], v[1]}, {{"epsilon", a.at("epsilon")}, {"variance_size", a.at("variance_size")}});
    return tail.apply(normalized[0], tail.has_tensor() ? v[2] : Value(), a);
  });
  add_tail_samples(op, tail, {{"x", {5, 192}}, {"weight", {192}}}, {{"epsilon", 1e-6}});
  add_tail_samples(op, tail, {{"x", {1, 576}}, {"weight", {576}, DType::f32}},
                   {{"epsilon", 1e-5}, {"variance_size", 64}});
}

// fused_add_rms_norm_<tail>: quantizes the first result of fused_add_rms_norm with the tail and also returns its second
// result. x_residual may be donated; the last result may use its memory. `intermediate` is that of fused_add_rms_norm.
inline void define_fused_add_rms_norm_quant(OpDefinition& op, const char* name, const QuantTail& tail) {
  const std::string schema = fmt::format(
      "{}(Tensor x, Tensor x_residual, Tensor? weight{}, float epsilon{}, int? variance_size=None, str "
      "intermediate=f32{}) -> {}",
      name, tail.tensors, tail.required, tail.attributes, result_list(tail.results + 1));
  op.schema(schema.c_str());
  op.allow_inplace().donates("x_residual", static_cast<int>(tail.results));
  op.checks([name, tail](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, name, "x");
    tail.check(request, name, x.shape, 3);
  });
  op.means([tail](Evaluator&, const Values& v, const Attributes& a) {
    const Values normalized = call("fused_add_rms_norm", {v[0], v[1], v[2]},
                                   {{"epsilon", a.at("epsilon")},
                                    {"variance_size", a.at("variance_size")},
                                    {"intermediate", a.at("intermediate")}});
    Values results = tail.apply(normalized[0], tail.has_tensor() ? v[3] : Value(), a);
    results.push_back(normalized[1]);
    return results;
  });
  add_tail_samples(op, tail, {{"x", {5, 192}}, {"x_residual", {5, 192}}, {"weight", {192}}}, {{"epsilon", 1e-6}});
  add_tail_samples(op, tail, {{"x", {1, 576}}, {"x_residual", {1, 576}}},
                   {{"epsilon", 1e-5}, {"intermediate", EnumWord{"input_dtype"}}});
  op.tolerance(DType::f16, {});
  op.tolerance(DType::bf16, {});
}

}  // namespace weft
