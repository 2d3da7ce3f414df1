// check_vectors DIR [--provider P] [--family F] [--expect-failing FILE]
//
// Holds the ops of this program to recorded vectors: DIR has FAMILY.manifest.json and FAMILY.safetensors (the form is
// described in tests/data/ops/README.md). Each case whose op is known runs as the op's meaning, or with --provider as
// that provider's kernel wherever it supports the call. Prints a line per family and what failed; exits 1 on a failure.
//
// FILE has lines `FAMILY CASE ELEMENTS`, and comments after #: the cases that cannot pass and in how many elements they
// differ. A listed case that passes, differs in another number of elements or does not exist is a failure too.

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "apps/cli/flags.h"
#include "apps/cli/verb.h"
#include "base/error.h"
#include "base/files.h"
#include "compiler/eager.h"
#include "compiler/interpret.h"
#include "io/safetensors.h"
#include "nn/rope.h"
#include "ops/add_scalar.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/rms_norm.h"
#include "tensor/convert.h"
#include "tests/sample_call.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Tensors = std::vector<std::pair<std::string, Tensor>>;

struct NotKnownYet {};

// What is wrong with a case: nothing, or the first difference in words and how many elements differ too much.
struct Problem {
  std::string text;
  std::int64_t elements = 0;
};

// Of each family, how many elements of a case are known to differ.
using KnownFailures = std::map<std::string, std::map<std::string, std::int64_t>>;

KnownFailures read_known_failures(const std::string& path) {
  KnownFailures known;
  if (path.empty()) return known;
  std::istringstream lines(read_file(path, 1u << 20));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string family, name;
    std::int64_t elements = 0;
    if (!(words >> family)) continue;
    USER_CHECK(words >> name >> elements && elements > 0, "[--expect-failing] a line must be FAMILY CASE ELEMENTS: {}",
               line);
    USER_CHECK(known[family].emplace(name, elements).second, "[--expect-failing] {} {} is listed twice", family, name);
  }
  return known;
}

const Tensor* find(const Tensors& tensors, std::string_view name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

const Tensor& at(const Tensors& tensors, std::string_view name) {
  const Tensor* tensor = find(tensors, name);
  CHECK(tensor != nullptr, "the case has no tensor {}", name);
  return *tensor;
}

// The dtype that the vectors call by torch's name; nothing for codes that are kept as integers.
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

class Family {
 public:
  Family(const std::string& folder, std::string name, const Context& context, std::string provider,
         std::map<std::string, std::int64_t> known_failures)
      : name_(std::move(name)),
        file_(folder + "/" + name_ + ".safetensors"),
        manifest_(Json::parse(read_file(folder + "/" + name_ + ".manifest.json", 64u << 20))),
        context_(context),
        provider_(std::move(provider)),
        known_failures_(std::move(known_failures)) {
    for (const SafetensorsTensor& tensor : Safetensors::parse(file_.bytes(), file_.path()).tensors)
      stored_.emplace(tensor.name, tensor);
  }

  // Whether nothing failed but what is known to, and that did.
  bool check() {
    int passed = 0, failed = 0, as_known = 0;
    std::map<std::string, int> unknown;
    std::string failures;
    for (const Json& entry : manifest_.at("cases")) {
      const std::string op = entry.at("op").get<std::string>(), name = entry.at("case").get<std::string>();
      Problem problem;
      try {
        problem = check_case(entry, op);
      } catch (const NotKnownYet&) {
        ++unknown[op];
        continue;
      } catch (const Error& error) {
        problem = {error.what()};
      }
      const std::string text = judged(name, problem);
      if (!text.empty()) {
        ++failed;
        failures += fmt::format("  FAILED {}: {}\n", name, text);
      } else {
        ++(problem.text.empty() ? passed : as_known);
      }
    }
    for (const auto& [name, elements] : known_failures_) {
      ++failed;
      failures += fmt::format("  FAILED {}: is listed as failing, but was not checked\n", name);
    }
    int not_known = 0;
    std::string names;
    for (const auto& [op, count] : unknown) {
      not_known += count;
      names += (names.empty() ? " (" : ", ") + op;
    }
    fmt::print("{}: {} passed, {} failed{}, {} not known yet{}\n{}", name_, passed, failed,
               as_known == 0 ? "" : fmt::format(", {} differ as listed", as_known), not_known,
               names.empty() ? "" : names + ")", failures);
    return failed == 0;
  }

 private:
  // Empty if the case did as it should; takes it off the list of those that are known to fail.
  std::string judged(const std::string& name, const Problem& problem) {
    auto listed = known_failures_.extract(name);
    if (listed.empty()) return problem.text;
    if (problem.text.empty()) return "passes, but is listed as failing";
    if (problem.elements == listed.mapped()) return "";
    return fmt::format("{} elements differ instead of the {} listed: {}", problem.elements, listed.mapped(),
                       problem.text);
  }

  Problem check_case(const Json& entry, const std::string& op) {
    const std::string name = entry.at("case").get<std::string>();
    const Tensors inputs = tensors(name, "in", entry.at("inputs"));
    Tensors wanted = tensors(name, "out", entry.at("outputs"));
    // Codes are stored as integers; a NaN may have any of its codes, so they are compared as numbers.
    if (op == "encode") wanted.front().second.meta.dtype = dtype_of_torch(name.substr(name.find('.') + 1));
    const std::vector<Tensor> came = results(op, name, inputs, wanted, entry.at("attributes"));
    CHECK(came.size() >= wanted.size(), "{} gives {} results", op, came.size());
    Problem whole;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Problem problem = difference(wanted[i].second, came[i], entry.at("tolerance"));
      if (whole.text.empty() && !problem.text.empty()) whole.text = wanted[i].first + ": " + problem.text;
      whole.elements += problem.elements;
    }
    return whole;
  }

  Tensors tensors(const std::string& name, const char* side, const Json& described) const {
    Tensors found;
    for (const auto& [key, facts] : described.items()) {
      const SafetensorsTensor& stored = stored_.at(name + "/" + side + "/" + key);
      const DType dtype = dtype_of_torch(facts.at("dtype").get<std::string>());
      const Meta meta = Meta::tensor(dtype, Shape(stored.shape.begin(), stored.shape.end()));
      found.emplace_back(key, Tensor::from_bytes(meta, file_.bytes().data() + stored.offset));
    }
    return found;
  }

  // In the order of the wanted outputs.
  std::vector<Tensor> results(const std::string& op, const std::string& name, const Tensors& inputs,
                              const Tensors& wanted, const Json& attributes) {
    if (op == "decode" || op == "encode") return converted(op, name, inputs, wanted);
    if (op == "cos_sin_cache") return rotary_table(inputs, wanted, attributes);
    Interpreter interpreter(context_);
    EagerEvaluator eager(context_, {1, 4096});
    Evaluator& home = provider_.empty() ? static_cast<Evaluator&>(interpreter) : eager;
    if (op == "gemma_rms_norm") return gemma(home, inputs, attributes);
    const Op* known = context_.ops.find(op);
    if (known == nullptr) throw NotKnownYet();
    Values operands;
    for (std::size_t i = 0; i < known->schema.tensor_count(); ++i) {
      const Parameter& parameter = known->schema.parameters[i];
      const Tensor* tensor = find(inputs, parameter.name);
      // vLLM rotates a query alone; here it goes with any key, whose result nobody looks at.
      if (tensor == nullptr && op == "rotary_embedding") tensor = find(inputs, "query");
      operands.push_back(tensor == nullptr ? Value() : Value::concrete(home, *tensor));
    }
    std::vector<Tensor> all;
    for (const Value& value : call(known->name.c_str(), operands, op_attributes(*known, attributes), false, &home))
      all.push_back(value.tensor());
    return all;
  }

  static std::vector<std::pair<std::string, Attribute>> op_attributes(const Op& op, const Json& described) {
    std::vector<std::pair<std::string, Attribute>> given;
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
  static std::vector<Tensor> gemma(Evaluator& home, const Tensors& inputs, const Json& attributes) {
    auto value = [&](const char* name) { return Value::concrete(home, at(inputs, name)); };
    const double epsilon = attributes.at("epsilon").get<double>();
    const Value weight = add_scalar(value("weight"), 1.0);
    const Value plain = rms_norm(value("x"), weight, epsilon);
    const auto [normed, residual] = fused_add_rms_norm(value("x"), value("x_residual"), weight, epsilon);
    return {plain.tensor(), normed.tensor(), residual.tensor()};
  }

  // table.FORMAT: codes to float32; round.FORMAT: float32 bit patterns to codes.
  static std::vector<Tensor> converted(const std::string& op, const std::string& name, const Tensors& inputs,
                                       const Tensors& wanted) {
    const DType format = dtype_of_torch(name.substr(name.find('.') + 1));
    const Tensor& source = inputs.front().second;
    const bool decode = op == "decode";
    Tensor result = Tensor::empty(wanted.front().second.meta);
    convert_row(decode ? format : DType::f32, source.data(), decode ? DType::f32 : format, result.data(),
                element_count(source.meta.shape).number());
    result.meta.dtype = decode ? DType::f32 : format;
    return {result};
  }

  static std::vector<Tensor> rotary_table(const Tensors& inputs, const Tensors& wanted, const Json& attributes) {
    const std::string type = attributes.at("rope_type").get<std::string>();
    static const std::map<std::string, RopeScalingType> kTypes = {
        {"default", RopeScalingType::none},    {"linear", RopeScalingType::linear},
        {"dynamic", RopeScalingType::dynamic}, {"llama3", RopeScalingType::llama3},
        {"yarn", RopeScalingType::yarn},       {"deepseek_yarn", RopeScalingType::yarn}};
    if (kTypes.count(type) == 0) throw NotKnownYet();
    const auto max_position = attributes.at("max_position").get<std::int64_t>();
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
    const std::vector<float> frequencies = nn::inverse_frequencies(rope, max_position);
    std::vector<Tensor> results;
    for (const auto& [key, tensor] : wanted) {
      Tensor made = Tensor::empty(tensor.meta);
      if (key == "inv_freq") {
        std::memcpy(made.data(), frequencies.data(), frequencies.size() * sizeof(float));
      } else {
        const Tensor& positions = at(inputs, "positions");
        for (std::int64_t i = 0; i < positions.meta.shape[0].number(); ++i)
          nn::fill_rotary_rows(frequencies, nn::rotary_magnitude(rope), positions.as<std::int64_t>()[i],
                               positions.as<std::int64_t>()[i] + 1, made.as<float>() + i * rope.rotary_dim);
      }
      results.push_back(std::move(made));
    }
    return results;
  }

  // How many representable numbers lie between two; a large count when one is infinite and the other is not.
  static double ulps(DType dtype, const std::byte* a, const std::byte* b, std::int64_t index) {
    const float x = load_float(dtype, a, index), y = load_float(dtype, b, index);
    if (x == y) return 0;
    if (std::isinf(x) || std::isinf(y)) return INFINITY;
    const int dropped = dtype == DType::f32 ? 0 : 16;  // bf16 is the upper half of f32
    auto ordered = [&](const std::byte* row) {
      std::int64_t bits = 0;
      if (dtype == DType::f16) {
        std::uint16_t half;
        std::memcpy(&half, row + index * 2, 2);
        bits = half & 0x7fff;
        return half & 0x8000 ? -bits : bits;
      }
      const auto word = std::bit_cast<std::uint32_t>(load_float(dtype, row, index));
      bits = (word & 0x7fffffff) >> dropped;
      return word & 0x80000000 ? -bits : bits;
    };
    return std::abs(static_cast<double>(ordered(a) - ordered(b)));
  }

  static Problem difference(const Tensor& wanted, const Tensor& came, const Json& tolerance) {
    if (wanted.meta.dtype != came.meta.dtype || wanted.meta.shape != came.meta.shape)
      return {fmt::format("is {}, not {}", came.meta.text(), wanted.meta.text())};
    const std::string kind = tolerance.at("kind").get<std::string>();
    if (kind != "exact" && kind != "close") throw NotKnownYet();
    const Tensor packed = contiguous(came);
    const DType dtype = wanted.meta.dtype;
    const std::int64_t count = element_count(wanted.meta.shape).number(), width = bytes_of(dtype, 1);
    const double most_ulps = tolerance.value("ulp_of_output_dtype", 0.0);
    const double absolute = tolerance.value("atol", 0.0), relative = tolerance.value("rtol", 0.0);
    Problem problem;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::byte* a = wanted.data() + i * width;
      const std::byte* b = packed.data() + i * width;
      if (std::memcmp(a, b, static_cast<std::size_t>(width)) == 0) continue;
      const double x = load_double(dtype, wanted.data(), i), y = load_double(dtype, packed.data(), i);
      if (std::isnan(x) && std::isnan(y)) continue;
      const bool close = kind == "close" && (ulps(dtype, wanted.data(), packed.data(), i) <= most_ulps ||
                                             std::abs(x - y) <= absolute + relative * std::abs(x));
      if (close) continue;
      if (++problem.elements == 1) problem.text = fmt::format("element {} is {} instead of {}", i, y, x);
    }
    return problem;
  }

  std::string name_;
  MappedFile file_;
  Json manifest_;
  const Context& context_;
  std::string provider_;
  std::map<std::string, std::int64_t> known_failures_;
  std::map<std::string, SafetensorsTensor> stored_;
};

int check_vectors(const std::string& folder, const std::string& provider, const std::string& only,
                  const std::string& expect_failing) {
  KnownFailures known = read_known_failures(expect_failing);
  const auto context = test_context();
  if (!provider.empty())
    for (const auto& [name, op] : context->ops.all()) context->priorities.set(name, {provider});
  std::set<std::string> families;
  const std::string ending = ".manifest.json";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(ending)) families.insert(file.substr(0, file.size() - ending.size()));
  }
  USER_CHECK(only.empty() || families.count(only) != 0, "[--family] {} has no family {}", folder, only);
  for (const auto& [family, cases] : known)
    USER_CHECK(families.count(family) != 0, "[--expect-failing] {} has no family {}", folder, family);
  bool good = true;
  for (const std::string& family : families)
    if (only.empty() || family == only)
      good = Family(folder, family, *context, provider, known[family]).check() && good;
  return good ? 0 : 1;
}

int check_vectors_of(const std::vector<std::string>& words) {
  Flags flags("check_vectors", "Holds the ops to recorded vectors.");
  std::string folder, provider, family, expect_failing;
  flags.option("folder", folder, "Holds FAMILY.manifest.json and FAMILY.safetensors.", {.required = true});
  flags.option("--provider", provider, "Run this provider's kernels instead of the meanings.");
  flags.option("--family", family, "Check this family alone.");
  flags.option("--expect-failing", expect_failing, "Lists the cases that differ, and in how many elements.");
  if (const std::string help = flags.parse(words); !help.empty()) {
    std::cout << help;
    return 0;
  }
  return check_vectors(folder, provider, family, expect_failing);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  return weft::guarded(std::cerr, [&] { return weft::check_vectors_of({argv + 1, argv + argc}); });
}
