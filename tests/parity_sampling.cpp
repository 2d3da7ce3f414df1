// Sampling from given logits.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "apps/cli/tensor_file.h"
#include "base/error.h"
#include "engine/sampling/sampler.h"
#include "tensor/convert.h"
#include "tests/parity.h"

namespace weft::parity {
namespace {

// The stored probabilities have eight digits, and vLLM's are within 1e-7 of the same rules in float64.
constexpr double kProbability = 2e-6;
constexpr double kNearCut = 1e-6;  // a threshold this near may keep one token more or less

struct SamplingRow {
  std::vector<float> logits;
  std::vector<int> prompt, output;
};

SamplingParameters sampling_parameters(const Json& given) {
  SamplingParameters parameters;
  for (const auto& [name, value] : given.items()) {
    if (name == "temperature")
      parameters.temperature = value;
    else if (name == "top_k")
      parameters.top_k = value;
    else if (name == "top_p")
      parameters.top_p = value;
    else if (name == "min_p")
      parameters.min_p = value;
    else if (name == "repetition_penalty")
      parameters.repetition_penalty = value;
    else if (name == "frequency_penalty")
      parameters.frequency_penalty = value;
    else if (name == "presence_penalty")
      parameters.presence_penalty = value;
    else
      fail_user("[sampling.json] {} is not a parameter", name);
  }
  return parameters;
}

bool is_near_cut(const Json& one) {
  for (const auto& [filter, distance] : one.at("cut_distance").items())
    if (distance.is_number() && distance.get<double>() > 0 && distance.get<double>() < kNearCut) return true;
  return false;
}

double entropy(const Distribution& distribution) {
  double sum = 0;
  for (double p : distribution.probabilities)
    if (p > 0) sum -= p * std::log(p);
  return sum;
}

void check_distribution(Family& family, const std::string& name, const Json& one, const Distribution& came,
                        const TensorFile& tensors) {
  const auto slack = static_cast<std::int64_t>(is_near_cut(one) ? 1 : 0);
  std::int64_t kept = 0;
  for (double p : came.probabilities) kept += p > 0 ? 1 : 0;
  const std::int64_t wanted_kept = one.at("kept");
  // A kept token's probability may be too small for a float32; those of the whole vocabulary are not counted.
  const bool filtered = tensors.find(name + ".kept").has_value() || one.at("top").size() == one.at("kept");
  if (filtered)
    family.check(name + " (kept)", std::abs(kept - wanted_kept) <= slack,
                 fmt::format("wanted {}, but came {}", wanted_kept, kept));
  family.check(name + " (entropy)", std::abs(entropy(came) - one.at("entropy").get<double>()) <= 1e-4,
               fmt::format("wanted {}, but came {}", one.at("entropy").dump(), entropy(came)));
  std::map<int, double> by_id;
  for (std::size_t i = 0; i < came.ids.size(); ++i) by_id[came.ids[i]] = came.probabilities[i];
  const auto expect = [&](int id, double wanted) {
    const double probability = by_id.contains(id) ? by_id[id] : 0;
    return std::abs(probability - wanted) <= kProbability * std::max(1.0, slack * 1e3);
  };
  int wrong = 0;
  for (const Json& pair : one.at("top")) wrong += expect(pair.at(0), pair.at(1)) ? 0 : 1;
  const std::optional<Tensor> ids = tensors.find(name + ".kept"), probabilities = tensors.find(name + ".probs");
  if (ids && probabilities) {
    for (std::int64_t i = 0; i < ids->meta.shape[0].number(); ++i) {
      const int id = static_cast<int>(load_integer(ids->meta.dtype, ids->data(), i));
      wrong += expect(id, load_double(probabilities->meta.dtype, probabilities->data(), i)) ? 0 : 1;
      if (slack == 0 && !by_id.contains(id)) ++wrong;
    }
  }
  family.check(name + " (probabilities)", wrong == 0, fmt::format("{} differ", wrong));
}

}  // namespace

void check_sampling(Family& family, const Subject& subject) {
  const Json file = read_json(subject, "sampling.json");
  const TensorFile tensors(subject.folder + "/sampling.safetensors");
  std::map<std::string, SamplingRow> rows;
  for (const auto& [name, row] : file.at("rows").items()) {
    SamplingRow& read = rows[name];
    read.prompt = ids_of(row.at("prompt_ids"));
    read.output = ids_of(row.at("output_ids"));
    if (row.contains("tensor")) {
      const std::optional<Tensor> tensor = tensors.find(row.at("tensor"));
      USER_CHECK(tensor && tensor->meta.dtype == DType::f32, "[sampling.safetensors] must hold f32 logits");
      const std::int64_t count = element_count(tensor->meta.shape).number();
      read.logits.assign(tensor->as<float>(), tensor->as<float>() + count);
    } else {
      for (const Json& logit : row.at("logits"))
        read.logits.push_back(logit.is_null() ? -std::numeric_limits<float>::infinity() : logit.get<float>());
    }
  }
  for (const Json& one : file.at("cases")) {
    const std::string name = one.at("name");
    family.run(name, [&] {
      const SamplingRow& row = rows.at(name.substr(0, name.find('.')));
      const SamplingParameters parameters = sampling_parameters(one.at("params"));
      if (one.contains("greedy")) {
        const int token = Sampler().sample(row.logits, parameters, row.prompt, row.output);
        family.check(name, token == one.at("greedy"),
                     fmt::format("wanted {}, but came {}", one.at("greedy").dump(), token));
      } else {
        check_distribution(family, name, one, Sampler().distribution(row.logits, parameters, row.prompt, row.output),
                           tensors);
      }
    });
  }
}

}  // namespace weft::parity
