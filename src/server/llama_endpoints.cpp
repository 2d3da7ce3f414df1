#include "server/llama_endpoints.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "base/version.h"
#include "server/json_body.h"
#include "server/llama_samplers.h"
#include "server/prepared_request.h"
#include "server/request_fields.h"

namespace weft {
namespace {

// llama.cpp's false is a bias that rules a token out.
bool read_bias(Element value, double& bias) {
  bool flag = true;
  if (value.get(flag) != simdjson::SUCCESS) return value.get(bias) == simdjson::SUCCESS;
  bias = -std::numeric_limits<double>::infinity();
  return !flag;
}

// `of` names the list in messages.
PromptParts parts_of(const simdjson::dom::array& list, const std::string& of) {
  PromptParts parts;
  for (const Element item : list) {
    int id = 0;
    std::string_view text;
    if (item.get(text) == simdjson::SUCCESS) {
      parts.emplace_back(std::string(text));
    } else if (read_id(item, id)) {
      parts.emplace_back(id);
    } else {
      throw WrongPart{fmt::format("item {}{} must be a text or a token id, but is {}", parts.size(), of, shown(item))};
    }
  }
  return parts;
}

}  // namespace

// llama.cpp's: a text, or a list with a token id beside texts or token ids, is one prompt; each item of another list
// is.
std::string read_prompt_parts(Element value, ApiRequest& request) {
  request.prompt_parts.clear();
  std::string_view text;
  simdjson::dom::array list;
  if (value.get(text) == simdjson::SUCCESS) {
    request.prompt_parts.push_back({std::string(text)});
    return "";
  }
  if (value.get(list) != simdjson::SUCCESS) return "a text, a list of texts and token ids, or a list of such prompts";
  const auto is_id = [](Element item) { return item.is_number(); };
  if (std::any_of(list.begin(), list.end(), is_id)) {
    request.prompt_parts.push_back(parts_of(list, ""));
    return "";
  }
  for (const Element item : list) {
    simdjson::dom::array parts;
    const std::size_t index = request.prompt_parts.size();
    if (item.get(text) == simdjson::SUCCESS) {
      request.prompt_parts.push_back({std::string(text)});
    } else if (item.get(parts) == simdjson::SUCCESS) {
      request.prompt_parts.push_back(parts_of(parts, fmt::format(" of item {}", index)));
    } else {
      throw WrongPart{
          fmt::format("item {} must be a text, a token id or a list of those, but is {}", index, shown(item))};
    }
  }
  return "";
}

// llama.cpp's: pairs of a token id or a text and a bias, or an object of those.
std::string read_lora_scales(Element value, ApiRequest& request) {
  request.lora.clear();
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return R"(a list of {"id": 0, "scale": 0.5})";
  std::size_t at = 0;
  for (const Element item : list) {
    simdjson::dom::object object;
    std::int64_t id = 0;
    double scale = 0;
    const bool is_object = item.get(object) == simdjson::SUCCESS;
    const auto given_id = is_object ? last_member(object, "id") : std::nullopt;
    const auto given_scale = is_object ? last_member(object, "scale") : std::nullopt;
    const bool fits = given_id && given_id->get(id) == simdjson::SUCCESS &&
                      (!given_scale || given_scale->get(scale) == simdjson::SUCCESS) && std::abs(scale) <= 1e6;
    if (!fits) throw WrongPart{fmt::format(R"(item {} must be {{"id": 0, "scale": 0.5}}, but is {})", at, shown(item))};
    request.lora[id] = scale;
    ++at;
  }
  return "";
}

std::string read_text_bias(Element value, ApiRequest& request) {
  request.text_bias.clear();
  double bias = 0;
  simdjson::dom::object biases;
  if (value.get(biases) == simdjson::SUCCESS) {
    for (const auto& [key, item] : last_members(biases)) {
      int id = 0;
      if (!read_bias(item, bias))
        throw WrongPart{fmt::format("the bias of {} must be a number or false, but is {}", quote(key), shown(item))};
      if (whole_id(key, id)) {
        request.text_bias.emplace_back(id, bias);
      } else {
        request.text_bias.emplace_back(std::string(key), bias);
      }
    }
    return "";
  }
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return "a list of [token id or text, number or false]";
  for (const Element item : list) {
    simdjson::dom::array pair;
    std::string_view text;
    int id = 0;
    const bool has_bias = item.get(pair) == simdjson::SUCCESS && pair.size() == 2 && read_bias(pair.at(1), bias);
    if (has_bias && pair.at(0).get(text) == simdjson::SUCCESS) {
      request.text_bias.emplace_back(std::string(text), bias);
    } else if (has_bias && read_id(pair.at(0), id)) {
      request.text_bias.emplace_back(id, bias);
    } else {
      throw WrongPart{fmt::format("item {} must be [token id or text, number or false], but is {}",
                                  request.text_bias.size(), shown(item))};
    }
  }
  return "";
}

std::string read_other_limit(Element value, ApiRequest& request) {
  std::int64_t limit = 0;
  if (value.get(limit) != simdjson::SUCCESS || limit < -1) return "an integer of at least -1";
  if (!request.n_predict) request.n_predict = limit;
  return "";
}

SamplingParameters llama_defaults() {
  return {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05, .penalty_window = 64, .order = kLlamaOrder};
}

Json llama_settings(const SamplingParameters& parameters) {
  return {{"temperature", parameters.temperature},
          {"top_k", parameters.top_k},
          {"top_p", parameters.top_p},
          {"min_p", parameters.min_p},
          {"repeat_penalty", parameters.repetition_penalty},
          {"repeat_last_n", parameters.penalty_window},
          {"presence_penalty", parameters.presence_penalty},
          {"frequency_penalty", parameters.frequency_penalty},
          {"samplers", sampler_names(parameters)},
          {"ignore_eos", parameters.ignore_end}};
}

Json props(const ServedModel& model) {
  return {{"default_generation_settings",
           {{"n_ctx", model.max_model_len}, {"params", llama_settings(model.llama_defaults)}}},
          {"total_slots", model.most_sequences},
          {"model_alias", model.names[0]},
          {"model_path", model.root},
          {"modalities", {{"vision", false}, {"audio", false}}},
          {"chat_template", model.template_source},
          {"build_info", std::string("weft-") + kVersion}};
}

Json slots(const ServedModel& model, std::span<const OpenSequence> running) {
  Json list = Json::array();
  for (std::int64_t i = 0; i < model.most_sequences; ++i) {
    Json slot{{"id", i}, {"n_ctx", model.max_model_len}, {"is_processing", i < std::ssize(running)}};
    if (i < std::ssize(running)) {
      const OpenSequence& sequence = running[static_cast<std::size_t>(i)];
      slot["id_task"] = sequence.ticket;
      slot["params"] = llama_settings(*sequence.parameters);
      slot["next_token"] = {{"n_decoded", sequence.tokens},
                            {"n_remain", sequence.parameters->max_tokens - sequence.tokens}};
    }
    list.push_back(std::move(slot));
  }
  return list;
}

Json applied_template(const ApiRequest& request, const ServedModel& model) {
  check_model(request, model);
  check_fields(request);
  return {{"prompt", render_messages(request, model)}};
}

}  // namespace weft
