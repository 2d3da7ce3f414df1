#include "server/responses_answer.h"

#include <ctime>
#include <string_view>
#include <utility>

#include "server/sampling_fields.h"

namespace weft {
namespace {

constexpr const char *kCompleted = "completed", *kIncomplete = "incomplete", *kFailed = "failed";

Json error_of(const char* message) { return {{"code", "server_error"}, {"message", message}}; }

}  // namespace

ResponsesAnswer::ResponsesAnswer(PreparedRequest prepared, const ServedModel& model, const std::string& id,
                                 Ticket ticket, std::shared_ptr<HttpReply> reply)
    : BlocksAnswer(std::move(prepared), model, ticket, std::move(reply)),
      id_("resp_" + id),
      model_(model.name_of(this->prepared().adapter)),
      created_(std::time(nullptr)) {
  const ApiRequest& request = this->prepared().request;
  // Entries have the form of a chat's.
  logprobs_style_ = {.endpoint = chat,
                     .tokenizer = model.tokenizer,
                     .tokens_as_ids = request.return_tokens_as_token_ids.value_or(model.answers.tokens_as_ids),
                     .count = requested_logprobs(request).value_or(0)};
}

AnswerBlocks& ResponsesAnswer::make_blocks(const AnswerBlocksOptions& options) {
  std::function<void(Json)> send;
  if (is_stream()) send = [this](Json event) { send_numbered(std::move(event)); };
  return output_.emplace(ResponsesOutputOptions{.blocks = options,
                                                .has_logprobs = requested_logprobs(prepared().request).has_value(),
                                                .logprobs = logprobs_style_},
                         std::move(send));
}

// All items are complete.
void ResponsesAnswer::end(const RequestEvent& last) {
  completed_ = std::time(nullptr);
  const bool is_cut = last.finished == FinishReason::length;
  status_ = is_cut ? kIncomplete : kCompleted;
  if (!is_stream()) return send_whole();
  send_response(is_cut ? "response.incomplete" : "response.completed", status_);
  end_stream();
}

void ResponsesAnswer::begin_stream() {
  send_response("response.created", status_);
  send_response("response.in_progress", status_);
}

void ResponsesAnswer::send_numbered(Json event) {
  event["sequence_number"] = sequence_number_++;
  send_event(event, event["type"].get_ref<const std::string&>());
}

void ResponsesAnswer::send_response(const char* type, const char* status, const Json& error) {
  send_numbered({{"type", type}, {"response", response(status, error)}});
}

void ResponsesAnswer::cut_stream() {
  fail_stream("the server is shutting down");
  end_stream();
}

// The caller ends the stream.
void ResponsesAnswer::send_failure(const ApiError& failure) { fail_stream(failure.what()); }

void ResponsesAnswer::fail_stream(const char* message) {
  cut_blocks();
  completed_ = std::time(nullptr);
  send_response("response.failed", kFailed, error_of(message));
}

Json ResponsesAnswer::usage() const {
  return {{"input_tokens", input_tokens()},
          {"input_tokens_details", {{"cached_tokens", cached_tokens()}}},
          {"output_tokens", output_tokens()},
          {"output_tokens_details", {{"reasoning_tokens", output_->reasoning_tokens()}}},
          {"total_tokens", input_tokens() + output_tokens()}};
}

// With the keys of OpenAI's, and the fields of the request that it repeats.
Json ResponsesAnswer::response(const char* status, const Json& error) const {
  const ApiRequest& request = prepared().request;
  const auto repeated = [&](const char* name, Json otherwise) { return request.repeated.value(name, otherwise); };
  const bool is_over = completed_ != 0;
  const bool is_incomplete = std::string_view(status) == kIncomplete;
  Json json{{"id", id_},
            {"object", "response"},
            {"created_at", created_},
            {"status", status},
            {"background", false},
            {"completed_at", std::string_view(status) == kCompleted ? Json(completed_) : Json(nullptr)},
            {"error", error},
            {"incomplete_details", is_incomplete ? Json{{"reason", "max_output_tokens"}} : Json(nullptr)},
            {"instructions", request.instructions ? Json(*request.instructions) : Json(nullptr)},
            {"max_output_tokens", request.max_completion_tokens ? Json(*request.max_completion_tokens) : Json(nullptr)},
            {"max_tool_calls", nullptr},
            {"metadata", repeated("metadata", Json::object())},
            {"model", model_},
            {"output", is_over ? output_->items() : Json::array()},
            {"parallel_tool_calls", request.parallel_tool_calls.value_or(true)},
            {"previous_response_id", nullptr}};
  json["prompt_cache_key"] = repeated("prompt_cache_key", nullptr);
  json["reasoning"] = repeated("reasoning", Json{{"effort", nullptr}, {"summary", nullptr}});
  json["safety_identifier"] = repeated("safety_identifier", nullptr);
  json["service_tier"] = "default";
  json["store"] = false;
  json["temperature"] = prepared().parameters.temperature;
  json["text"] = repeated("text", Json{{"format", {{"type", "text"}}}});
  json["tool_choice"] = repeated("tool_choice", "auto");
  json["tools"] = repeated("tools", Json::array());
  json["top_logprobs"] = request.top_logprobs.value_or(0);
  json["top_p"] = prepared().parameters.top_p;
  json["truncation"] = repeated("truncation", "disabled");
  json["usage"] = is_over ? usage() : Json(nullptr);
  json["user"] = repeated("user", nullptr);
  return json;
}

}  // namespace weft
