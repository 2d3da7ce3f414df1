#include "server/llama_samplers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "server/api_error.h"
#include "server/json_body.h"

namespace weft {
namespace {

constexpr std::string_view kPenalties = "penalties";

struct SamplerName {
  std::string_view name;
  std::array<std::string_view, 4> also;  // other spellings
  char letter;                           // in a text of letters
  std::optional<SamplerStep> step;       // none: the sampler is not implemented, so it is off; or it is the penalties
};

const SamplerName kNames[] = {
    {kPenalties, {}, 'e', std::nullopt},
    {"dry", {}, 'd', std::nullopt},
    {"top_n_sigma", {"top-n-sigma"}, 's', std::nullopt},
    {"top_k", {"top-k"}, 'k', SamplerStep::top_k},
    {"typ_p", {"typ-p", "typ", "typical", "typical_p"}, 'y', std::nullopt},
    {"top_p", {"top-p", "nucleus"}, 'p', SamplerStep::top_p},
    {"min_p", {"min-p"}, 'm', SamplerStep::min_p},
    {"tfs_z", {}, 'f', std::nullopt},  // of older versions
    {"xtc", {}, 'x', std::nullopt},
    {"temperature", {"temp"}, 't', SamplerStep::temperature},
    {"adaptive_p", {"adaptive-p"}, 'a', std::nullopt},
};

bool is_name(const SamplerName& known, std::string_view name) {
  return known.name == name ||
         (!name.empty() && std::find(known.also.begin(), known.also.end(), name) != known.also.end());
}

template <class Fits>
const SamplerName* find_name(const Fits& fits) {
  const auto* found = std::find_if(std::begin(kNames), std::end(kNames), fits);
  return found == std::end(kNames) ? nullptr : found;
}

void add_name(std::vector<std::string>& names, const SamplerName* known, std::string_view written) {
  if (known == nullptr) throw WrongPart{fmt::format("{} is not the name of a sampler", quote(written, 100))};
  std::string name(known->name);
  // Clients have lists with a sampler that is off under several names.
  if (known->step && std::find(names.begin(), names.end(), name) != names.end())
    throw WrongPart{fmt::format("must have {} once", name)};
  names.push_back(std::move(name));
}

void turn_off(SamplingParameters& parameters, SamplerStep step) {
  switch (step) {
    case SamplerStep::temperature:
      parameters.temperature = 1;
      break;
    case SamplerStep::min_p:
      parameters.min_p = 0;
      break;
    case SamplerStep::top_k:
      parameters.top_k = 0;
      break;
    case SamplerStep::top_p:
      parameters.top_p = 1;
      break;
  }
}

bool has_penalty(const SamplingParameters& parameters) {
  return parameters.repetition_penalty != 1 || parameters.frequency_penalty != 0 || parameters.presence_penalty != 0;
}

}  // namespace

std::string read_samplers(Element value, ApiRequest& request) {
  std::vector<std::string>& names = request.samplers.emplace();
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    for (const char& letter : text)
      add_name(names, find_name([&](const SamplerName& known) { return known.letter == letter; }), {&letter, 1});
    return "";
  }
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return "a list of names";
  for (const Element item : list) {
    if (item.get(text) != simdjson::SUCCESS)
      throw WrongPart{fmt::format("item {} must be a name, but is {}", names.size(), shown(item))};
    add_name(names, find_name([&](const SamplerName& known) { return is_name(known, text); }), text);
  }
  return "";
}

void use_samplers(SamplingParameters& parameters, const std::vector<std::string>& names) {
  std::vector<SamplerStep> order;
  bool has_penalties = false;
  for (const std::string& name : names) {
    if (name == kPenalties) {
      if (!order.empty() && has_penalty(parameters))
        throw wrong_value("[samplers] penalties must come before top_k, top_p, min_p and temperature", "samplers");
      has_penalties = true;
      continue;
    }
    if (const auto step = find_name([&](const SamplerName& known) { return known.name == name; })->step)
      order.push_back(*step);
  }
  if (!has_penalties) {
    parameters.repetition_penalty = 1;
    parameters.frequency_penalty = parameters.presence_penalty = 0;
  }
  for (const SamplerStep step : kVllmOrder) {
    if (std::find(order.begin(), order.end(), step) != order.end()) continue;
    turn_off(parameters, step);
    order.push_back(step);
  }
  std::copy(order.begin(), order.end(), parameters.order.begin());
}

std::vector<std::string> sampler_names(const SamplingParameters& parameters) {
  std::vector<std::string> names{std::string(kPenalties)};
  for (const SamplerStep step : parameters.order)
    names.emplace_back(find_name([&](const SamplerName& known) { return known.step == step; })->name);
  return names;
}

}  // namespace weft
