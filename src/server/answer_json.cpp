#include "server/answer_json.h"

#include "base/content_hash.h"

namespace weft {
namespace {

Json event_head(const AnswerHead& head) {
  return {{"id", head.id},
          {"object", head.endpoint == chat ? "chat.completion.chunk" : "text_completion"},
          {"created", head.created},
          {"model", head.model}};
}

}  // namespace

Json metrics_json(const std::optional<SequenceTimes>& times) {
  if (!times) return nullptr;
  const auto tokens = static_cast<double>(times->tokens);
  const bool has_gaps = times->tokens > 1 && times->generation > 0;
  return {{"time_to_first_token_ms", 1e3 * times->prefill},
          {"generation_time_ms", 1e3 * times->generation},
          {"queue_time_ms", 1e3 * times->queue},
          {"mean_itl_ms", has_gaps ? Json(1e3 * times->generation / (tokens - 1)) : Json(nullptr)},
          {"tokens_per_second", has_gaps ? Json(tokens / times->generation) : Json(nullptr)}};
}

Json usage_json(const AnswerUsage& usage) {
  Json json{{"prompt_tokens", usage.prompt_tokens},
            {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
            {"completion_tokens", usage.completion_tokens}};
  if (usage.cached_tokens) json["prompt_tokens_details"] = {{"cached_tokens", *usage.cached_tokens}};
  return json;
}

Json whole_choice(Endpoint endpoint, std::size_t index, const AnswerChoice& choice, bool has_ids,
                  const Json& prompt_ids) {
  Json json{{"index", index}};
  if (endpoint == chat) {
    const bool is_null = !choice.calls.empty() && choice.text.empty() && !choice.is_call_alone;
    Json message{{"role", "assistant"}, {"content", is_null ? Json(nullptr) : Json(choice.text)},
                 {"refusal", nullptr},  {"annotations", nullptr},
                 {"audio", nullptr},    {"function_call", nullptr}};
    if (!choice.calls.empty()) message["tool_calls"] = choice.calls;
    message["reasoning"] = choice.reasoning.empty() ? Json(nullptr) : Json(choice.reasoning);
    json["message"] = std::move(message);
  } else {
    json["text"] = choice.text;
  }
  json["logprobs"] = choice.logprobs;
  json["finish_reason"] = choice.end.reason;
  json["stop_reason"] = choice.end.stop_reason;
  json["token_ids"] = has_ids ? Json(choice.tokens) : Json(nullptr);
  if (endpoint == chat) return json;
  json["prompt_logprobs"] = choice.prompt_logprobs;
  json["prompt_token_ids"] = prompt_ids;
  return json;
}

Json whole_answer(const AnswerHead& head, std::vector<Json> choices, const AnswerUsage& usage,
                  const Json& prompt_logprobs, const Json& prompt_ids, const Json& prompt_text) {
  Json json{{"id", head.id},
            {"object", head.endpoint == chat ? "chat.completion" : "text_completion"},
            {"created", head.created},
            {"model", head.model},
            {"choices", std::move(choices)},
            {"service_tier", nullptr},
            {"system_fingerprint", head.fingerprint},
            {"usage", usage_json(usage)}};
  if (!usage.cached_tokens) json["usage"]["prompt_tokens_details"] = nullptr;
  json["usage"]["completion_tokens_details"] = nullptr;
  if (head.endpoint != chat) return json;
  json["prompt_logprobs"] = prompt_logprobs;
  json["prompt_token_ids"] = prompt_ids;
  json["prompt_text"] = prompt_text;
  return json;
}

Json role_event(const AnswerHead& head, std::size_t index, const Json& prompt_ids, const Json& prompt_text) {
  Json json = event_head(head);
  json["choices"] = Json::array({{{"index", index},
                                  {"delta", {{"role", "assistant"}, {"content", ""}}},
                                  {"logprobs", nullptr},
                                  {"finish_reason", nullptr}}});
  json["prompt_token_ids"] = prompt_ids;
  json["prompt_text"] = prompt_text;
  return json;
}

Json text_event(const AnswerHead& head, std::size_t index, const std::string& text, Json logprobs, const Json& ids,
                const std::optional<AnswerEnd>& end, const Json& prompt_ids) {
  Json choice{{"index", index}};
  if (head.endpoint == chat) {
    choice["delta"] = {{"content", text}};
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = end ? Json(end->reason) : Json(nullptr);
  if (end || head.endpoint != chat) choice["stop_reason"] = end ? end->stop_reason : Json(nullptr);
  if (head.endpoint != chat) choice["prompt_token_ids"] = prompt_ids;
  choice["token_ids"] = ids;
  Json json = event_head(head);
  json["choices"] = Json::array({std::move(choice)});
  return json;
}

Json delta_event(const AnswerHead& head, std::size_t index, Json delta, Json logprobs, const Json& ids,
                 const std::optional<AnswerEnd>& end) {
  Json json = text_event(head, index, "", std::move(logprobs), ids, end, nullptr);
  json["choices"][0]["delta"] = std::move(delta);
  return json;
}

Json tool_call(const std::string& id, const ToolCall& call) {
  return {{"id", id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

Json call_begin_delta(std::size_t index, const std::string& id, const std::string& name) {
  Json call{{"index", index}};
  call.update(tool_call(id, {.name = name, .arguments = ""}));
  return {{"tool_calls", Json::array({std::move(call)})}};
}

Json call_arguments_delta(std::size_t index, const std::string& arguments) {
  return {{"tool_calls", Json::array({{{"index", index}, {"function", {{"arguments", arguments}}}}})}};
}

Json usage_event(const AnswerHead& head, const AnswerUsage& usage) {
  Json json = event_head(head);
  json["choices"] = Json::array();
  json["usage"] = usage_json(usage);
  return json;
}

std::string event_text(const Json& json, std::string_view name) {
  std::string text;
  if (!name.empty()) text.append("event: ").append(name).append("\n");
  return text + "data: " + json_text(json) + "\n\n";
}

Json model_card(const ServedModel& model, const std::string& name, const ServedAdapter* adapter) {
  const Json permission{{"id", "modelperm-" + hash_bytes(name).hex().substr(0, 16)},
                        {"object", "model_permission"},
                        {"created", model.created},
                        {"allow_create_engine", false},
                        {"allow_sampling", true},
                        {"allow_logprobs", true},
                        {"allow_search_indices", false},
                        {"allow_view", true},
                        {"allow_fine_tuning", false},
                        {"organization", "*"},
                        {"group", nullptr},
                        {"is_blocking", false}};
  return {{"id", name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "weft"},
          {"root", adapter == nullptr ? model.root : adapter->path},
          {"parent", adapter == nullptr ? Json(nullptr) : Json(model.names[0])},
          {"max_model_len", model.max_model_len},
          {"permission", Json::array({permission})}};
}

}  // namespace weft
