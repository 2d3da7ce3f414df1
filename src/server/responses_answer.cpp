#include "server/responses_answer.h"

#include <algorithm>
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
    : RunningRequest(std::move(reply), prepared.request.stream.value_or(false)),
      prepared_(std::move(prepared)),
      id_("resp_" + id),
      model_(model.names[0]),
      ticket_(ticket),
      splitter_(prepared_.form.splitter(prepared_.request.tools)),
      created_(std::time(nullptr)) {
  const ApiRequest& request = prepared_.request;
  stream_interval_ = std::max(model.answers.stream_interval, request.stream_interval.value_or(1));
  // Entries have the form of a chat's.
  logprobs_style_ = {.endpoint = chat,
                     .tokenizer = model.tokenizer,
                     .tokens_as_ids = request.return_tokens_as_token_ids.value_or(model.answers.tokens_as_ids),
                     .count = requested_logprobs(request).value_or(0)};
}

std::vector<Sequence> ResponsesAnswer::begin(std::uint64_t random_seed) {
  const AnswerForm& form = prepared_.form;
  const ResponsesOutputOptions options{.shows_reasoning = form.shows_reasoning,
                                       .has_logprobs = requested_logprobs(prepared_.request).has_value(),
                                       .logprobs = logprobs_style_,
                                       .has_short_ids = form.dialect != nullptr && form.dialect->has_short_ids,
                                       .random_bits = random_seed};
  std::function<void(Json)> send;
  if (is_stream()) send = [this](Json event) { send_numbered(std::move(event)); };
  output_.emplace(options, std::move(send));
  return {{.ticket = ticket_,
           .prompt = prepared_.prompts[0].ids,
           .parameters = std::make_shared<const SamplingParameters>(prepared_.parameters),
           .seed = prepared_.has_seed ? prepared_.parameters.seed : random_seed,
           .priority = prepared_.request.priority.value_or(0),
           .cache_salt = prepared_.request.cache_salt.value_or("")}};
}

std::vector<Ticket> ResponsesAnswer::open_tickets() const {
  return is_over() ? std::vector<Ticket>() : std::vector<Ticket>{ticket_};
}

AnswerEvents ResponsesAnswer::events_of(const std::string& text) {
  if (splitter_) return splitter_->push(text);
  AnswerEvents events;
  add_text(events, AnswerEvent::Kind::content, text);
  return events;
}

void ResponsesAnswer::take(const SequenceEvent& taken) {
  if (is_over()) return;
  const RequestEvent& event = taken.event;
  if (event.finished == FinishReason::failed) return fail(event.error);
  if (is_stream() && !has_begun_) begin_stream();
  const bool is_first = token_count_++ == 0;
  cached_tokens_ = event.cached_tokens;
  output_->take(events_of(event.text), event.logprobs);
  if (event.finished != FinishReason::none) {
    const bool is_cut = event.finished == FinishReason::length;
    finish(is_cut);
    return end(is_cut ? kIncomplete : kCompleted);
  }
  // The first event is sent at once, and so is the last.
  if (++unsent_count_ < stream_interval_ && !is_first) return;
  unsent_count_ = 0;
  output_->flush();
}

void ResponsesAnswer::finish(bool is_cut) {
  output_->finish(splitter_ ? splitter_->finish() : AnswerEvents(), is_cut);
  completed_ = std::time(nullptr);
}

// All items are complete.
void ResponsesAnswer::end(const char* status, Json error) {
  status_ = status;
  if (!is_stream()) return is_large() ? leave_unwritten() : send_answer(response(status, error));
  const std::string_view name = status;
  send_response(name == kCompleted    ? "response.completed"
                : name == kIncomplete ? "response.incomplete"
                                      : "response.failed",
                status, error);
  end_stream();
}

bool ResponsesAnswer::is_large() const {
  const std::optional<std::int64_t>& tops = prepared_.parameters.logprobs;
  const std::int64_t entries = 1 + (tops ? 1 + std::max<std::int64_t>(*tops, 0) : 0);
  return token_count_ * entries > static_cast<std::int64_t>(kMostWrittenAtOnce);
}

void ResponsesAnswer::begin_stream() {
  has_begun_ = true;
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
  if (!has_begun_) begin_stream();
  finish(true);
  end(kFailed, error_of("the server is shutting down"));
}

// The caller ends the stream.
void ResponsesAnswer::send_failure(const ApiError& failure) {
  if (!has_begun_) begin_stream();
  finish(true);
  send_response("response.failed", kFailed, error_of(failure.what()));
}

Json ResponsesAnswer::usage() const {
  const std::int64_t input = std::ssize(*prepared_.prompts[0].ids);
  return {{"input_tokens", input},
          {"input_tokens_details", {{"cached_tokens", cached_tokens_}}},
          {"output_tokens", token_count_},
          {"output_tokens_details", {{"reasoning_tokens", output_->reasoning_tokens()}}},
          {"total_tokens", input + token_count_}};
}

// With the keys of OpenAI's, and the fields of the request that it repeats.
Json ResponsesAnswer::response(const char* status, const Json& error) const {
  const ApiRequest& request = prepared_.request;
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
  json["temperature"] = prepared_.parameters.temperature;
  json["text"] = repeated("text", Json{{"format", {{"type", "text"}}}});
  json["tool_choice"] = repeated("tool_choice", "auto");
  json["tools"] = repeated("tools", Json::array());
  json["top_logprobs"] = request.top_logprobs.value_or(0);
  json["top_p"] = prepared_.parameters.top_p;
  json["truncation"] = repeated("truncation", "disabled");
  json["usage"] = is_over ? usage() : Json(nullptr);
  json["user"] = repeated("user", nullptr);
  return json;
}

}  // namespace weft
