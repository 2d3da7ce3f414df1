#include "server/generation.h"

#include <ctime>

#include "base/content_hash.h"
#include "server/api_error.h"

namespace weft {

Generation::Generation(PreparedRequest prepared, const ServedModel& model, const std::string& id, Ticket first,
                       std::shared_ptr<HttpReply> reply)
    : prepared_(std::move(prepared)), first_(first), reply_(std::move(reply)) {
  const ApiRequest& request = prepared_.request;
  head_ = {.endpoint = request.endpoint,
           .id = (request.endpoint == chat ? "chatcmpl-" : "cmpl-") + id,
           .created = std::time(nullptr),
           .model = model.names[0],
           .fingerprint = model.fingerprint};
  choices_.resize(prepared_.prompts.size() * static_cast<std::size_t>(prepared_.choices));
  open_ = choices_.size();
  is_stream_ = request.stream.value_or(false);
  has_ids_ = request.return_token_ids.value_or(false);
  has_usage_event_ = is_stream_ && request.include_usage.value_or(false);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].answer.text = prompt_of(i).text;
    choices_[i].splitter = prepared_.form.splitter();
  }
}

const PreparedPrompt& Generation::prompt_of(std::size_t choice) const {
  return prepared_.prompts[choice / static_cast<std::size_t>(prepared_.choices)];
}

bool Generation::is_first_of_prompt(std::size_t choice) const {
  return choice % static_cast<std::size_t>(prepared_.choices) == 0;
}

Json Generation::prompt_ids_of(std::size_t choice) const {
  return has_ids_ ? Json(*prompt_of(choice).ids) : Json(nullptr);
}

std::vector<Ticket> Generation::open_tickets() const {
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < choices_.size(); ++i)
    if (!choices_[i].is_over) tickets.push_back(first_ + i);
  return tickets;
}

std::vector<Sequence> Generation::begin(std::uint64_t random_seed) {
  if (prepared_.parameters.max_tokens == 0) {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      if (is_stream_) send_text(i, "", {}, AnswerEnd{.reason = "length"});
      finish(i, {.reason = "length"});
    }
    return {};
  }
  random_bits_ = random_seed;
  const std::uint64_t seed = prepared_.has_seed ? prepared_.parameters.seed : random_seed;
  const auto parameters = std::make_shared<const SamplingParameters>(prepared_.parameters);
  std::vector<Sequence> sequences;
  for (std::size_t i = 0; i < choices_.size(); ++i)
    sequences.push_back({.ticket = first_ + i,
                         .prompt = prompt_of(i).ids,
                         .parameters = parameters,
                         .seed = seed + i % static_cast<std::size_t>(prepared_.choices)});
  return sequences;
}

AnswerEnd Generation::end_of(const RequestEvent& event) const {
  AnswerEnd end{.reason = event.finished == FinishReason::length ? "length" : "stop"};
  if (event.stop_text >= 0) end.stop_reason = prepared_.parameters.stop[static_cast<std::size_t>(event.stop_text)];
  if (event.stop_id >= 0) end.stop_reason = event.stop_id;
  return end;
}

AnswerUsage Generation::usage() const {
  AnswerUsage usage;
  for (const PreparedPrompt& prompt : prepared_.prompts) usage.prompt_tokens += std::ssize(*prompt.ids);
  for (const Choice& choice : choices_) usage.completion_tokens += choice.tokens;
  return usage;
}

void Generation::take(const SequenceEvent& event) {
  const auto index = static_cast<std::size_t>(event.ticket - first_);
  Choice& choice = choices_[index];
  if (is_over_ || choice.is_over) return;
  if (event.event.finished == FinishReason::failed) return fail(event.event.error);
  ++choice.tokens;
  std::optional<AnswerEnd> end;
  if (event.event.finished != FinishReason::none) end = end_of(event.event);
  if (!is_stream_ && has_ids_) choice.answer.tokens.push_back(event.event.token);
  take_text(index, event.event.text, {event.event.token}, std::move(end));
}

// New text of a choice, and its end if this is the last.
void Generation::take_text(std::size_t index, const std::string& text, const std::vector<int>& tokens,
                           std::optional<AnswerEnd> end) {
  Choice& choice = choices_[index];
  if (choice.splitter) {
    AnswerEvents events = choice.splitter->push(text);
    if (end)
      for (AnswerEvent& event : choice.splitter->finish()) events.push_back(std::move(event));
    for (const AnswerEvent& event : events) choice.parts.add(event);
    // Only whole calls count: what is cut ends with another reason.
    const bool has_calls = !choice.parts.calls.empty() && prepared_.form.tool_choice.kind != ToolChoice::Kind::named;
    if (end && has_calls && std::string_view(end->reason) == "stop") end->reason = "tool_calls";
    if (is_stream_) send_deltas(index, deltas_of(index, events), tokens, end);
  } else if (is_stream_) {
    send_text(index, text, tokens, end);
  } else {
    choice.answer.text += text;
  }
  if (end) finish(index, *end);
}

std::string Generation::call_id(std::size_t choice, std::size_t call) const {
  ContentHasher hasher;
  hasher.add(random_bits_).add(static_cast<std::uint64_t>(choice)).add(static_cast<std::uint64_t>(call));
  const std::string hex = hasher.finish().hex();
  const bool is_short = prepared_.form.dialect != nullptr && prepared_.form.dialect->has_short_ids;
  return is_short ? hex.substr(0, 9) : "chatcmpl-tool-" + hex.substr(0, 16);
}

std::vector<Json> Generation::deltas_of(std::size_t index, const AnswerEvents& events) {
  using Kind = AnswerEvent::Kind;
  Choice& choice = choices_[index];
  std::vector<Json> deltas;
  for (const AnswerEvent& event : events) {
    if (event.kind == Kind::content) deltas.push_back({{"content", event.text}});
    if (event.kind == Kind::reasoning && prepared_.form.shows_reasoning) deltas.push_back({{"reasoning", event.text}});
    if (event.kind == Kind::call_begin) {
      const std::size_t call = choice.calls_begun++;
      deltas.push_back(call_begin_delta(call, call_id(index, call), event.text));
    }
    if (event.kind == Kind::call_arguments) deltas.push_back(call_arguments_delta(choice.calls_begun - 1, event.text));
    if (event.kind == Kind::call_broken && !event.unsent.empty()) deltas.push_back({{"content", event.unsent}});
  }
  if (deltas.empty()) deltas.push_back({{"content", ""}});
  return deltas;
}

void Generation::begin_stream() {
  has_begun_ = true;
  if (head_.endpoint != chat) return;
  const bool has_text = prepared_.request.return_prompt_text.value_or(false);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const bool is_first = is_first_of_prompt(i);
    send(role_event(head_, i, is_first ? prompt_ids_of(i) : Json(nullptr),
                    is_first && has_text ? Json(prepared_.prompt_text) : Json(nullptr)),
         i);
    if (!choices_[i].answer.text.empty())
      send(text_event(head_, i, choices_[i].answer.text, nullptr, std::nullopt, nullptr), i);
  }
}

void Generation::send(Json json, std::size_t choice, bool is_last) {
  if (prepared_.request.continuous_usage_stats.value_or(false))
    json["usage"] = usage_json({std::ssize(*prompt_of(choice).ids), choices_[choice].tokens});
  if (is_last) json["system_fingerprint"] = head_.fingerprint;
  reply_->send_event(event_text(json));
}

void Generation::send_text(std::size_t index, const std::string& text, const std::vector<int>& tokens,
                           const std::optional<AnswerEnd>& end) {
  if (!has_begun_) begin_stream();
  Choice& choice = choices_[index];
  // The prompt of a completion that echoes it is in its first event.
  const bool is_first = head_.endpoint != chat && !choice.has_event;
  choice.has_event = true;
  const std::string shown = is_first ? choice.answer.text + text : text;
  const Json prompt_ids = is_first && is_first_of_prompt(index) ? prompt_ids_of(index) : Json(nullptr);
  Json json = text_event(head_, index, shown, has_ids_ ? Json(tokens) : Json(nullptr), end, prompt_ids);
  send(std::move(json), index, end && open_ == 1 && !has_usage_event_);
}

void Generation::send_deltas(std::size_t index, std::vector<Json> deltas, const std::vector<int>& tokens,
                             const std::optional<AnswerEnd>& end) {
  if (!has_begun_) begin_stream();
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    const bool is_last = i + 1 == deltas.size();
    const Json ids = has_ids_ ? Json(is_last ? tokens : std::vector<int>()) : Json(nullptr);
    const auto end_here = is_last ? end : std::nullopt;
    Json json = delta_event(head_, index, std::move(deltas[i]), ids, end_here);
    send(std::move(json), index, end_here && open_ == 1 && !has_usage_event_);
  }
}

void Generation::finish(std::size_t index, const AnswerEnd& end) {
  Choice& choice = choices_[index];
  choice.is_over = true;
  choice.answer.end = end;
  if (!is_stream_ && choice.splitter) set_parts(index);
  if (--open_ == 0) finish_all();
}

void Generation::set_parts(std::size_t index) {
  Choice& choice = choices_[index];
  choice.answer.text += choice.parts.content;
  if (prepared_.form.shows_reasoning) choice.answer.reasoning = choice.parts.reasoning;
  choice.answer.is_call_alone = prepared_.form.tool_choice.kind == ToolChoice::Kind::required ||
                                prepared_.form.tool_choice.kind == ToolChoice::Kind::named;
  for (std::size_t call = 0; call < choice.parts.calls.size(); ++call)
    choice.answer.calls.push_back(tool_call(call_id(index, call), choice.parts.calls[call]));
}

void Generation::finish_all() {
  is_over_ = true;
  if (is_stream_) {
    if (has_usage_event_) {
      Json json = usage_event(head_, usage());
      json["system_fingerprint"] = head_.fingerprint;
      reply_->send_event(event_text(json));
    }
    reply_->send_event(kLastEvent);
    return reply_->end();
  }
  std::vector<Json> choices;
  for (std::size_t i = 0; i < choices_.size(); ++i)
    choices.push_back(whole_choice(head_.endpoint, i, choices_[i].answer, has_ids_, prompt_ids_of(i)));
  const bool has_text = prepared_.request.return_prompt_text.value_or(false);
  const Json answer = whole_answer(head_, std::move(choices), usage(), prompt_ids_of(0),
                                   has_text ? Json(prepared_.prompt_text) : Json(nullptr));
  reply_->send({.body = json_text(answer)});
}

void Generation::fail(const std::string& error) {
  is_over_ = true;
  error_ = error;
  // The sentence of the engine may have paths of this machine: it is for the log.
  const ApiError failure = internal_error("the model failed to compute this answer");
  if (!has_begun_) return reply_->send(failure.response());
  reply_->send_event(event_text(failure.body()));
  reply_->send_event(kLastEvent);
  reply_->end();
}

void Generation::abort() {
  if (is_over_) return;
  if (!has_begun_) {
    is_over_ = true;
    return reply_->send(unavailable("the server is shutting down").response());
  }
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].is_over) continue;
    take_text(i, "", {}, AnswerEnd{.reason = "abort"});
  }
}

}  // namespace weft
