#include "tests/recorded_quantization.h"

#include <map>

#include "base/error.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/concat.h"
#include "ops/dynamic_per_token_asymmetric_int8_quant.h"
#include "ops/dynamic_per_token_scaled_fp8_quant.h"
#include "ops/dynamic_per_token_scaled_int8_quant.h"
#include "ops/dynamic_scaled_fp8_quant.h"
#include "ops/fp8_quant.h"
#include "ops/input_to_float8.h"
#include "ops/linear_fp8_block.h"
#include "ops/linear_nvfp4.h"
#include "ops/mxfp4_quantize.h"
#include "ops/mxfp8_dequantize.h"
#include "ops/mxfp8_quantize.h"
#include "ops/pack_scales.h"
#include "ops/per_token_group_quant_fp8.h"
#include "ops/reshape.h"
#include "ops/scaled_dequantize.h"
#include "ops/scaled_fp4_dequant.h"
#include "ops/scaled_fp4_quant.h"
#include "ops/scaled_quantize.h"
#include "ops/silu_and_mul.h"
#include "ops/static_scaled_fp8_quant.h"
#include "ops/static_scaled_int8_quant.h"
#include "ops/swizzle_scale.h"
#include "ops/unswizzle_scale.h"
#include "tensor/convert.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

class Recorded {
 public:
  Recorded(const RecordedCall& call, Evaluator& home) : call_(call), attributes(call.attributes), home_(home) {}

  bool has(std::string_view name) const { return find(call_.inputs, name) != nullptr; }
  Tensor tensor(std::string_view name) const {
    const Tensor* found = find(call_.inputs, name);
    CHECK(found != nullptr, "{} has no tensor {}", call_.name, name);
    return *found;
  }
  Value value(Tensor tensor) const { return Value::concrete(home_, std::move(tensor)); }
  Value value(std::string_view name) const { return value(tensor(name)); }
  Value value_or_none(std::string_view name) const { return has(name) ? value(name) : Value(); }
  // Bytes of two codes each, as codes of four bits.
  Value fp4(std::string_view name) const {
    Tensor codes = tensor(name);
    codes.meta.shape.back() = codes.meta.shape.back() * Dim(2);
    codes.meta.dtype = DType::f4e2m1;
    return value(codes);
  }
  // Bytes that are exponents, as powers of two.
  Value powers(std::string_view name) const {
    Tensor scale = tensor(name);
    scale.meta.dtype = DType::f8e8m0;
    return value(scale);
  }

  const Meta& wanted(std::string_view name) const {
    const Tensor* found = find(call_.wanted, name);
    CHECK(found != nullptr, "{} has no result {}", call_.name, name);
    return found->meta;
  }

  const RecordedCall& call_;
  const Json& attributes;

 private:
  static const Tensor* find(const RecordedTensors& tensors, std::string_view name) {
    for (const auto& [key, tensor] : tensors)
      if (key == name) return &tensor;
    return nullptr;
  }

  Evaluator& home_;
};

using Tensors = std::vector<Tensor>;

Tensors tensors(const Values& values) {
  Tensors results;
  for (const Value& value : values) results.push_back(value.tensor());
  return results;
}

Tensors tensors(const std::pair<Value, Value>& values) { return tensors(Values{values.first, values.second}); }

// The bytes of a result as the record has them: of another dtype, or in another shape.
Tensor in_bytes(const Value& value, const Meta& recorded) {
  Tensor tensor = contiguous(value.tensor());
  CHECK(tensor.meta.bytes() == recorded.bytes(), "{} is not as large as {}", tensor.meta.text(), recorded.text());
  tensor.meta = recorded;
  return tensor;
}

struct GroupForm {
  double eps = 1e-10;
  double minimum_scale = 0;
  const char* scale_by = "division";
  const char* scale_ub_of = "magnitude";
  bool takes_tma = true;
  bool column_major = false;  // if the record does not say
  bool short_last_group = false;
};

// vLLM's definitions of a scale, by what they do.
GroupForm native_form() {
  return {.eps = 0, .minimum_scale = fp8_minimum_scale(DType::f8e4m3), .takes_tma = false, .short_last_group = true};
}
GroupForm fused_kernel_form() {
  return {.eps = 0, .minimum_scale = fp8_minimum_scale(DType::f8e4m3), .scale_by = "reciprocal"};
}

NamedAttributes group_attributes(const Json& a, std::int64_t group_size, const GroupForm& form) {
  const bool column_major = a.value("column_major_scales", a.value("is_scale_transposed", form.column_major));
  return {{"group_size", group_size},
          {"eps", a.value("eps", form.eps)},
          {"use_ue8m0", a.value("use_ue8m0", false)},
          {"column_major_scales", column_major},
          {"tma_aligned_scales", form.takes_tma && a.value("tma_aligned_scales", false)},
          {"minimum_scale", form.minimum_scale},
          {"ue8m0_minimum", 0.0},
          {"scale_by", EnumWord{form.scale_by}},
          {"scale_ub_of", EnumWord{form.scale_ub_of}},
          {"short_last_group", form.short_last_group}};
}

std::pair<Value, Value> group_quantized(const Value& x, const Json& a, std::int64_t group_size, const GroupForm& form) {
  const Values results = call("per_token_group_quant_fp8", {x, {}}, group_attributes(a, group_size, form));
  return {results[0], results[1]};
}

// QuantFP8.forward_native: results codes and scale.
std::pair<Value, Value> quant_fp8(const Value& x, const Value& scale, const Value& scale_ub, const Json& a) {
  const std::int64_t rows = a.at("group_shape")[0].get<std::int64_t>();
  const std::int64_t columns = a.at("group_shape")[1].get<std::int64_t>();
  const double least = a.value("scale_min", 0.0);
  if (a.at("static").get<bool>()) {
    const bool whole = rows == -1 && columns == -1;
    return {static_scaled_fp8_quant(x, scale, whole ? std::nullopt : std::optional(Shape{rows, columns})), scale};
  }
  if (rows == 1 && columns == -1)
    return dynamic_per_token_scaled_fp8_quant(x, scale_ub, least, "division", "reciprocal");
  if (rows == 1) return group_quantized(x, a, columns, native_form());
  return dynamic_scaled_fp8_quant(x, least);
}

Tensors quant_fp8(const Recorded& r) {
  auto [codes, scale] = quant_fp8(r.value("x"), r.value_or_none("scale"), r.value_or_none("scale_ub"), r.attributes);
  // The layer pads the rows of codes after the op.
  if (const std::int64_t rows = r.attributes.value("num_token_padding", std::int64_t{0}); rows > 0) {
    Shape shape = codes.meta().shape;
    shape[0] = rows - shape[0].number();
    codes = concat({codes, r.value(Tensor::empty(Meta::tensor(codes.dtype(), shape)))}, 0);
  }
  return {codes.tensor(), reshape(scale, r.wanted("scale").shape).tensor()};
}

Tensors scaled_int8_quant(const Recorded& r) {
  if (!r.attributes.at("dynamic").get<bool>())
    return {static_scaled_int8_quant(r.value("x"), r.value("scale"), r.value_or_none("zero_point")).tensor()};
  if (r.attributes.at("symmetric").get<bool>()) return tensors(dynamic_per_token_scaled_int8_quant(r.value("x")));
  const auto [codes, scale, zero_point] = dynamic_per_token_asymmetric_int8_quant(r.value("x"));
  return tensors(Values{codes, scale, zero_point});
}

Shape group_shape(const Recorded& r) {
  return {r.attributes.at("group_shape")[0].get<std::int64_t>(), r.attributes.at("group_shape")[1].get<std::int64_t>()};
}

DType wanted_dtype(const Recorded& r) { return r.wanted("0").dtype; }

Tensors quantized_mxfp8(const Recorded& r) {
  const bool swizzled = r.attributes.at("scale_layout") != "row-major";
  const auto [codes, scale] = mxfp8_quantize(r.value("x"), swizzled);
  return {codes.tensor(), in_bytes(scale, r.wanted("scale"))};
}

Tensors quantized_mxfp4(const Recorded& r) {
  const auto [codes, scale] = mxfp4_quantize(r.value("x"));
  return {in_bytes(codes, r.wanted("codes")), in_bytes(scale, r.wanted("scale"))};
}

Tensors quantized_nvfp4(const Recorded& r) {
  const auto [codes, scale] = scaled_fp4_quant(r.value("x"), r.value("global_scale"), false);
  return {cast(codes, DType::f32).tensor(), cast(scale, DType::f32).tensor()};
}

Tensors nvfp4_there_and_back(const Recorded& r) {
  const Value global_scale = r.value("global_scale");
  const auto [codes, scale] = scaled_fp4_quant(r.value("x"), global_scale, false);
  return {scaled_fp4_dequant(codes, scale, global_scale, false, true, wanted_dtype(r)).tensor()};
}

Tensors nvfp4_linear(const Recorded& r) {
  const Value global_scale = r.value("input_global_scale");
  const auto [codes, scale] = scaled_fp4_quant(r.value("x"), global_scale, false);
  return {linear_nvfp4(codes, scale, global_scale, r.fp4("codes"), r.value("scale"), r.value("weight_global_scale"), {},
                       false, "output_dtype", wanted_dtype(r))
              .tensor()};
}

Tensors swizzled(const Recorded& r) { return {in_bytes(swizzle_scale(r.value("scale")), r.wanted("0"))}; }

Tensors unswizzled(const Recorded& r) {
  const Shape shape = r.wanted("0").shape;
  Tensor scale = r.tensor("scale");
  scale.meta.shape = {1, align(shape[0], 128), align(shape[1], 4)};
  return {unswizzle_scale(r.value(scale), shape).tensor()};
}

Tensors block_linear(const Recorded& r) {
  const Shape block{r.attributes.at("block_n").get<std::int64_t>(), r.attributes.at("block_k").get<std::int64_t>()};
  const Value y = linear_fp8_block(r.value("a_codes"), r.value("a_scale"), r.value("b_codes"), r.value("b_scale"), {},
                                   block, r.wanted("native").dtype);
  return Tensors(r.call_.wanted.size(), y.tensor());
}

// An activation or a norm, and the quantization of what it gives. vLLM's kernels for norms round in between, too.
struct Fused {
  std::string front;
  std::string tail;
  NamedAttributes attributes;
};

Fused fused_of_two_layers(const Recorded& r) {
  const Json& a = r.attributes;
  const std::string& op = r.call_.op;
  const std::size_t plus = op.find(" + ");
  Fused fused{.front = op.substr(0, plus)};
  const std::string tail = op.substr(plus + 3);
  if (tail == "static fp8") {
    fused.tail = "static_scaled_fp8_quant";
  } else if (tail == "token fp8") {
    fused.tail = "dynamic_per_token_scaled_fp8_quant";
    fused.attributes = {{"minimum_scale", a.at("scale_min").get<double>()}, {"codes_by", EnumWord{"reciprocal"}}};
  } else if (tail == "group quant") {
    fused.tail = "per_token_group_quant_fp8";
    fused.attributes = group_attributes(a, a.at("group_shape")[1].get<std::int64_t>(), native_form());
  } else {
    throw NotKnownYet();
  }
  return fused;
}

Fused fused_kernel(const Recorded& r) {
  const Json& a = r.attributes;
  const std::string& op = r.call_.op;
  const std::string norm = r.has("x_residual") ? "fused_add_rms_norm" : "rms_norm";
  const std::string by_group = "per_token_group_quant_fp8", by_token = "dynamic_per_token_scaled_fp8_quant";
  const auto groups = [&](const GroupForm& form) {
    return group_attributes(a, a.at("group_size").get<std::int64_t>(), form);
  };
  if (op == "silu_and_mul_per_block_quant") {
    GroupForm form = fused_kernel_form();
    form.scale_ub_of = "scale";
    Fused fused{"silu_and_mul", by_group, groups(form)};
    fused.attributes.emplace_back("intermediate", EnumWord{"f32"});
    return fused;
  }
  if (op == "silu_mul_per_token_group_quant_fp8_colmajor")
    return {"silu_and_mul", by_group, groups({.scale_by = "reciprocal", .column_major = true})};
  if (op == "rms_norm_per_block_quant") return {norm, by_group, groups(fused_kernel_form())};
  if (a.at("out") == "int8") return {norm, "dynamic_per_token_scaled_int8_quant", {}};
  return {norm, by_token, {{"scale_by", EnumWord{"reciprocal"}}}};
}

Tensors run_fused(const Recorded& r, Fused fused) {
  Values operands = {r.value("x")};
  if (fused.front == "fused_add_rms_norm") operands.push_back(r.value("x_residual"));
  if (fused.front != "silu_and_mul") {
    operands.push_back(r.value("weight"));
    fused.attributes.emplace_back("epsilon", r.attributes.at("epsilon").get<double>());
  }
  const bool is_static = fused.tail == "static_scaled_fp8_quant";
  if (is_static) operands.push_back(r.value("scale"));
  if (fused.tail == "per_token_group_quant_fp8" || fused.tail == "dynamic_per_token_scaled_fp8_quant")
    operands.push_back(r.value_or_none("scale_ub"));
  Tensors results = tensors(call((fused.front + "_" + fused.tail).c_str(), operands, fused.attributes));
  if (is_static) results.insert(results.begin() + 1, r.tensor("scale"));
  if (r.call_.wanted.back().first == "intermediate") results.push_back(silu_and_mul(r.value("x")).tensor());
  return results;
}

// The product is rounded once, and the scales are packed.
Tensors packed_silu_quantization(const Recorded& r) {
  const Value x = r.value("x");
  const Value y = cast(silu_and_mul(cast(x, DType::f32)), x.dtype());
  const auto [codes, scale] =
      per_token_group_quant_fp8(y, {}, r.attributes.at("group_size").get<std::int64_t>(), 1e-10, true);
  return tensors(Values{codes, pack_scales(cast(scale, DType::f8e8m0))});
}

using Runner = Tensors (*)(const Recorded&);

const std::map<std::string_view, Runner>& runners() {
  static const std::map<std::string_view, Runner> kRunners = {
      {"quant_fp8", [](const Recorded& r) { return quant_fp8(r); }},
      {"input_to_float8", [](const Recorded& r) { return tensors(input_to_float8(r.value("x"))); }},
      {"scaled_quantize", [](const Recorded& r) { return tensors(scaled_quantize(r.value("x"), group_shape(r))); }},
      {"scaled_dequantize",
       [](const Recorded& r) {
         return Tensors{
             scaled_dequantize(r.value("codes"), r.value("scale"), group_shape(r), wanted_dtype(r)).tensor()};
       }},
      // The baseline of the Helion kernel divides as the CUDA kernel does; Triton's multiplies.
      {"per_token_group_fp8_quant",
       [](const Recorded& r) {
         return tensors(group_quantized(r.value("x"), r.attributes, r.attributes.at("group_size"), {}));
       }},
      {"per_token_group_quant_fp8",
       [](const Recorded& r) {
         return tensors(
             group_quantized(r.value("x"), r.attributes, r.attributes.at("group_size"), {.scale_by = "reciprocal"}));
       }},
      {"dynamic_per_token_scaled_fp8_quant",
       [](const Recorded& r) {
         return tensors(
             dynamic_per_token_scaled_fp8_quant(r.value("x"), r.value_or_none("scale_ub"), std::nullopt, "reciprocal"));
       }},
      {"scaled_int8_quant", scaled_int8_quant},
      {"mxfp8_quantize", quantized_mxfp8},
      {"mxfp8_dequantize",
       [](const Recorded& r) { return Tensors{mxfp8_dequantize(r.value("codes"), r.powers("scale")).tensor()}; }},
      {"mxfp4_quantize", quantized_mxfp4},
      {"nvfp4_quantize", quantized_nvfp4},
      {"nvfp4_quant_dequant", nvfp4_there_and_back},
      {"nvfp4_dequantize",
       [](const Recorded& r) {
         return Tensors{scaled_fp4_dequant(r.fp4("codes"), r.value("scale"), r.value("global_scale"), false, false,
                                           wanted_dtype(r))
                            .tensor()};
       }},
      {"nvfp4_linear", nvfp4_linear},
      {"cast_to_fp4",
       [](const Recorded& r) {
         // torch.sign takes the sign of a zero.
         return Tensors{cast(cast(add_scalar(r.value("x"), 0.0), DType::f4e2m1), wanted_dtype(r)).tensor()};
       }},
      {"fp4_unpack", [](const Recorded& r) { return Tensors{cast(r.fp4("codes"), wanted_dtype(r)).tensor()}; }},
      {"swizzle_scale", swizzled},
      {"unswizzle_scale", unswizzled},
      {"w8a8_block_linear", block_linear},
      {"silu_and_mul_per_block_quant", [](const Recorded& r) { return run_fused(r, fused_kernel(r)); }},
      {"silu_mul_per_token_group_quant_fp8_colmajor", [](const Recorded& r) { return run_fused(r, fused_kernel(r)); }},
      {"rms_norm_per_block_quant", [](const Recorded& r) { return run_fused(r, fused_kernel(r)); }},
      {"rms_norm_dynamic_per_token_quant", [](const Recorded& r) { return run_fused(r, fused_kernel(r)); }},
      {"silu_mul_quant_fp8_packed", packed_silu_quantization},
  };
  return kRunners;
}

}  // namespace

std::optional<Tensors> run_recorded_quantization(const RecordedCall& recorded, Evaluator& home) {
  if (recorded.op.find(" + ") != std::string::npos) {
    const Recorded r(recorded, home);
    return run_fused(r, fused_of_two_layers(r));
  }
  const auto runner = runners().find(recorded.op);
  if (runner == runners().end()) return std::nullopt;
  return runner->second(Recorded(recorded, home));
}

RecordedTensors comparable(const std::string& op, RecordedTensors wanted) {
  if (op != "w8a8_block_linear") return wanted;
  const DType dtype = wanted.front().second.meta.dtype;
  for (auto& [name, tensor] : wanted) {
    if (tensor.meta.dtype != DType::f64) continue;
    Tensor rounded = Tensor::empty(Meta::tensor(dtype, tensor.meta.shape));
    convert_row(DType::f64, tensor.data(), dtype, rounded.data(), element_count(tensor.meta.shape).number());
    tensor = rounded;
  }
  return wanted;
}

}  // namespace weft
