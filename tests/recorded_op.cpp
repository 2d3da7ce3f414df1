#include "tests/recorded_op.h"

#include <cmath>
#include <cstring>
#include <map>

#include "base/error.h"
#include "nn/rope.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/rms_norm.h"
#include "tensor/convert.h"
#include "tests/recorded_quantization.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

const Tensor* find(const RecordedTensors& tensors, std::string_view name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

const Tensor& at(const RecordedTensors& tensors, std::string_view name) {
  const Tensor* tensor = find(tensors, name);
  CHECK(tensor != nullptr, "the case has no tensor {}", name);
  return *tensor;
}

NamedAttributes op_attributes(const Op& op, const Json& described) {
  NamedAttributes given;
  for (std::size_t i = op.schema.tensor_count(); i < op.schema.parameters.size(); ++i) {
    const std::string& name = op.schema.parameters[i].name;
    auto found = described.find(name);
    if (found == described.end() || found->is_null()) continue;
    if (found->is_boolean()) given.emplace_back(name, found->get<bool>());
    if (found->is_number_integer()) given.emplace_back(name, found->get<std::int64_t>());
    if (found->is_number_float()) given.emplace_back(name, found->get<double>());
    // vLLM's approximate="none" is the exact form, by the error function.
    if (found->is_string())
      given.emplace_back(name, EnumWord{*found == "none" ? std::string("erf") : found->get<std::string>()});
  }
  // Triton's kernel converts the quotient, which cuts it off.
  if (op.name == "per_token_group_quant_int8") given.emplace_back("rounding", EnumWord{"toward_zero"});
  return given;
}

// Gemma's norm scales by weight + 1 in float32: plain, then with the residual.
std::vector<Tensor> gemma(Evaluator& home, const RecordedTensors& inputs, const Json& attributes) {
  auto value = [&](const char* name) { return Value::concrete(home, at(inputs, name)); };
  const double epsilon = attributes.at("epsilon").get<double>();
  const Value weight = add_scalar(value("weight"), 1.0);
  const Value plain = rms_norm(value("x"), weight, epsilon);
  const auto [normed, residual] = fused_add_rms_norm(value("x"), value("x_residual"), weight, epsilon);
  return {plain.tensor(), normed.tensor(), residual.tensor()};
}

// Two records of one op: vLLM's layer without some of its arguments, and with them.
std::string op_name(const std::string& recorded) {
  static const std::map<std::string, std::string> kForms = {{"silu_and_mul_with_clamp_oai", "silu_and_mul_with_clamp"},
                                                            {"situ_and_mul_linear", "situ_and_mul"}};
  const auto found = kForms.find(recorded);
  return found == kForms.end() ? recorded : found->second;
}

// A number in the form that vLLM stores in bfloat16, so that softplus returns it: log(exp(value) - 1), each step
// rounded.
Tensor before_softplus(double value) {
  Tensor stored = Tensor::empty(Meta::tensor(DType::bf16, {1}));
  const auto rounded = [&](double number) {
    store_float(DType::bf16, stored.data(), 0, static_cast<float>(number));
    return static_cast<double>(load_float(DType::bf16, stored.data(), 0));
  };
  rounded(std::log(rounded(rounded(std::exp(rounded(value))) - 1)));
  return stored;
}

// The record has the alphas as vLLM's layer takes them, the negative one including beta; the op takes them as they are
// stored.
RecordedTensors xielu_inputs(RecordedTensors inputs, const Json& attributes) {
  const double beta = attributes.at("beta").get<double>();
  inputs.emplace_back("alpha_p", before_softplus(attributes.at("alpha_p").get<double>()));
  inputs.emplace_back("alpha_n", before_softplus(attributes.at("alpha_n").get<double>() - beta));
  return inputs;
}

// table.FORMAT: codes to float32; round.FORMAT: float32 bit patterns to codes.
std::vector<Tensor> converted(const RecordedCall& recorded, Evaluator& home) {
  const DType format = format_of_torch(recorded.name);
  const bool decode = recorded.op == "decode";
  Tensor source = recorded.inputs.front().second;
  source.meta.dtype = decode ? format : DType::f32;
  return {cast(Value::concrete(home, source), decode ? DType::f32 : format).tensor()};
}

RopeConfig rope_config(const Json& attributes, std::int64_t max_position) {
  const std::string type = attributes.at("rope_type").get<std::string>();
  static const std::map<std::string, RopeScalingType> kTypes = {
      {"default", RopeScalingType::none},    {"linear", RopeScalingType::linear},
      {"dynamic", RopeScalingType::dynamic}, {"llama3", RopeScalingType::llama3},
      {"yarn", RopeScalingType::yarn},       {"deepseek_yarn", RopeScalingType::yarn}};
  if (kTypes.count(type) == 0) throw NotKnownYet();
  RopeConfig rope;
  rope.theta = attributes.at("rope_theta").get<double>();
  rope.rotary_dim = static_cast<std::int64_t>(attributes.at("head_size").get<double>() *
                                              attributes.value("partial_rotary_factor", 1.0));
  RopeScaling& scaling = rope.scaling;
  scaling.type = kTypes.at(type);
  scaling.factor = attributes.value("factor", 1.0);
  scaling.original_context_length = attributes.value("original_max_position_embeddings", max_position);
  scaling.low_freq_factor = attributes.value("low_freq_factor", scaling.low_freq_factor);
  scaling.high_freq_factor = attributes.value("high_freq_factor", scaling.high_freq_factor);
  scaling.beta_fast = attributes.value("beta_fast", scaling.beta_fast);
  scaling.beta_slow = attributes.value("beta_slow", scaling.beta_slow);
  scaling.truncate = attributes.value("truncate", scaling.truncate);
  auto optional = [&](const char* key, std::optional<double>& field) {
    if (attributes.contains(key)) field = attributes.at(key).get<double>();
  };
  optional("attention_factor", scaling.attention_factor);
  optional("mscale", scaling.mscale);
  optional("mscale_all_dim", scaling.mscale_all_dim);
  optional("alpha", scaling.alpha);
  return rope;
}

std::vector<Tensor> rotary_table(const RecordedCall& recorded) {
  const auto max_position = recorded.attributes.at("max_position").get<std::int64_t>();
  const RopeConfig rope = rope_config(recorded.attributes, max_position);
  const std::vector<float> frequencies = nn::inverse_frequencies(rope, max_position);
  std::vector<Tensor> results;
  for (const auto& [key, tensor] : recorded.wanted) {
    Tensor made = Tensor::empty(tensor.meta);
    if (key == "inv_freq") {
      std::memcpy(made.data(), frequencies.data(), frequencies.size() * sizeof(float));
    } else {
      const Tensor& positions = at(recorded.inputs, "positions");
      for (std::int64_t i = 0; i < positions.meta.shape[0].number(); ++i)
        nn::fill_rotary_rows(frequencies, nn::rotary_magnitude(rope, max_position), positions.as<std::int64_t>()[i],
                             positions.as<std::int64_t>()[i] + 1, made.as<float>() + i * rope.rotary_dim);
    }
    results.push_back(std::move(made));
  }
  return results;
}

}  // namespace

std::vector<Tensor> run_recorded(const RecordedCall& recorded, Evaluator& home) {
  const auto& [op, name, inputs, wanted, attributes] = recorded;
  if (op == "decode" || op == "encode") return converted(recorded, home);
  if (op == "cos_sin_cache") return rotary_table(recorded);
  if (op == "gemma_rms_norm") return gemma(home, inputs, attributes);
  if (auto results = run_recorded_quantization(recorded, home)) return *std::move(results);
  const Op* known = home.ops().find(op_name(op));
  if (known == nullptr) throw NotKnownYet();
  const RecordedTensors tensors = op == "xielu" ? xielu_inputs(inputs, attributes) : inputs;
  Values operands;
  for (std::size_t i = 0; i < known->schema.tensor_count(); ++i) {
    const Parameter& parameter = known->schema.parameters[i];
    const Tensor* tensor = find(tensors, parameter.name);
    // vLLM rotates only a query; here it needs a key, whose result is ignored.
    if (tensor == nullptr && op == "rotary_embedding") tensor = find(tensors, "query");
    operands.push_back(tensor == nullptr ? Value() : Value::concrete(home, *tensor));
  }
  std::vector<Tensor> all;
  for (const Value& value : call(known->name.c_str(), operands, op_attributes(*known, attributes), false, &home))
    all.push_back(value.tensor());
  return all;
}

DType dtype_of_torch(std::string_view name) {
  static const std::map<std::string_view, DType> kNames = {{"float32", DType::f32},
                                                           {"float16", DType::f16},
                                                           {"bfloat16", DType::bf16},
                                                           {"float64", DType::f64},
                                                           {"int8", DType::i8},
                                                           {"uint8", DType::u8},
                                                           {"int32", DType::i32},
                                                           {"int64", DType::i64},
                                                           {"uint32", DType::u32},
                                                           {"uint16", DType::u16},
                                                           {"float8_e4m3fn", DType::f8e4m3},
                                                           {"float8_e5m2", DType::f8e5m2},
                                                           {"float8_e8m0fnu", DType::f8e8m0}};
  auto found = kNames.find(name);
  if (found == kNames.end()) throw NotKnownYet();
  return found->second;
}

DType format_of_torch(std::string_view name) { return dtype_of_torch(name.substr(name.find('.') + 1)); }

}  // namespace weft
