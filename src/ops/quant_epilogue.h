#pragma once

// Quantizations as the epilogue of another op. The ops <front>_<quantizing op> of products/fused_quant.cpp and
// attention_quant.h are made from them. A schema lists the tensors of front and epilogue, then the required attributes
// of both, then the optional ones. The results are the codes, the scales if there are any, and other results of the
// front.

#include <vector>

#include <fmt/core.h>

#include "ops/dynamic_per_token_scaled_fp8_quant.h"
#include "ops/per_token_group_quant_fp8.h"
#include "ops/per_token_group_quant_int8.h"
#include "ops/scaled_fp4_quant.h"
#include "ops/static_scaled_fp8_quant.h"

namespace weft {

struct QuantEpilogue {
  const char* op;          // the op that is the quantization alone
  std::string tensors;     // of its schema, after x: ", Tensor scale"
  std::string required;    // attributes without a default: ", int group_size"
  std::string attributes;  // attributes with a default: ", float eps=1e-10"
  std::size_t results = 2;
  // Throws UserError unless the epilogue can quantize values of this shape. `operand` is the index of the epilogue's
  // tensor, if the epilogue has one.
  void (*check)(const OpRequest&, const char* op, const Shape&, std::size_t operand);
  std::vector<Sample> samples;  // for rows of at least 192 elements that are whole groups of 32, of 48 and of 64

  bool has_tensor() const { return !tensors.empty(); }
};

// Returns an upper bound for magnitudes of about 1, or for the scales that such magnitudes have.
inline SampleTensor sample_scale_ub(bool of_scales) {
  return {"scale_ub", {1}, DType::f32, of_scales ? Fill::codes : Fill::positive};
}

inline QuantEpilogue static_fp8_epilogue() {
  const SampleTensor scale{"scale", {1}, DType::f32, Fill::codes};
  return {.op = "static_scaled_fp8_quant",
          .tensors = ", Tensor scale",
          .attributes = std::string(", ") + kStaticFp8Attributes,
          .results = 1,
          .check = check_static_fp8,
          .samples = {{{scale}, {}}, {{scale}, {{"dtype", DType::f8e4m3fnuz}}}}};
}

inline QuantEpilogue token_fp8_epilogue() {
  return {.op = "dynamic_per_token_scaled_fp8_quant",
          .tensors = ", Tensor? scale_ub=None",
          .attributes = std::string(", ") + kTokenFp8Attributes,
          .check = [](const OpRequest& request, const char* op, const Shape&,
                      std::size_t scale_ub) { check_token_fp8(request, op, scale_ub); },
          .samples = {{{}, {}}, {{sample_scale_ub(false)}, {{"codes_by", EnumWord{"reciprocal"}}}}}};
}

inline QuantEpilogue group_fp8_epilogue() {
  return {.op = "per_token_group_quant_fp8",
          .tensors = ", Tensor? scale_ub=None",
          .required = ", int group_size",
          .attributes = std::string(", ") + kGroupFp8Attributes,
          .check = check_group_fp8,
          .samples = {{{}, {{"group_size", 32}}},
                      {{}, {{"group_size", 64}, {"use_ue8m0", true}, {"column_major_scales", true}}},
                      {{}, {{"group_size", 64}, {"column_major_scales", true}, {"tma_aligned_scales", true}}},
                      {{sample_scale_ub(false)}, {{"group_size", 64}}},
                      {{sample_scale_ub(true)}, {{"group_size", 64}, {"scale_ub_of", EnumWord{"scale"}}}}}};
}

inline QuantEpilogue token_int8_epilogue() {
  return {.op = "dynamic_per_token_scaled_int8_quant",
          .check = [](const OpRequest&, const char*, const Shape&, std::size_t) {},
          .samples = {{{}, {}}}};
}

inline QuantEpilogue group_int8_epilogue() {
  const EnumWord toward_zero{"toward_zero"};
  return {.op = "per_token_group_quant_int8",
          .required = ", int group_size",
          .attributes = std::string(", ") + kGroupInt8Attributes,
          .check = [](const OpRequest& request, const char* op, const Shape& shape,
                      std::size_t) { check_group_int8(request, op, shape); },
          .samples = {{{}, {{"group_size", 32}}},
                      {{}, {{"group_size", 48}, {"rounding", toward_zero}}},
                      {{}, {{"group_size", 64}, {"rounding", toward_zero}, {"column_major_scales", true}}},
                      {{}, {{"group_size", 64}, {"column_major_scales", true}, {"tma_aligned_scales", true}}},
                      {{}, {{"group_size", 64}, {"minimum_scale", 0.01}}}}};
}

inline QuantEpilogue nvfp4_epilogue() {
  const SampleTensor global_scale{"global_scale", {1}, DType::f32, Fill::positive};
  return {.op = "scaled_fp4_quant",
          .tensors = ", Tensor global_scale",
          .attributes = ", bool swizzled_scales=True",
          .check = check_fp4,
          .samples = {{{global_scale}, {{"swizzled_scales", false}}}, {{global_scale}, {}}}};
}

// Calls the quantizing op on values, with its own attributes among those of the op that ends with it.
class EpilogueCall {
 public:
  explicit EpilogueCall(const QuantEpilogue& epilogue) : op_(epilogue.op), has_tensor_(epilogue.has_tensor()) {
    const Schema schema = parse_schema(
        fmt::format("{}(Tensor x{}{}{}) -> Tensor", op_, epilogue.tensors, epilogue.required, epilogue.attributes));
    for (std::size_t i = schema.tensor_count(); i < schema.parameters.size(); ++i)
      names_.push_back(schema.parameters[i].name);
  }

  // `tensor` is ignored if the epilogue has none.
  Values operator()(const Value& values, const Value& tensor, const Attributes& all) const {
    NamedAttributes own;
    for (const std::string& name : names_) own.emplace_back(name, all.at(name));
    return call(op_, has_tensor_ ? Values{values, tensor} : Values{values}, own);
  }

 private:
  const char* op_;
  bool has_tensor_;
  std::vector<std::string> names_;  // of its attributes
};

// Adds the epilogue's samples, combined with the front's tensors and attributes, and sets all tolerances of codes and
// scales to zero.
inline void add_epilogue_samples(OpDefinition& op, const QuantEpilogue& epilogue,
                                 const std::vector<SampleTensor>& tensors, const NamedAttributes& attributes) {
  for (const Sample& own : epilogue.samples) {
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

}  // namespace weft
