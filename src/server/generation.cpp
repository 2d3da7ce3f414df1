#include "server/generation.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/content_hash.h"
#include "server/sampling_fields.h"

namespace weft {

Generation::Generation(PreparedRequest prepared, const ServedModel& model, const std::string& id, Ticket first,
                       std::shared_ptr<HttpReply> reply)
    : RunningRequest(std::move(reply), prepared.request.stream.value_or(false), kLastEvent),
      prepared_(std::move(prepared)),
      first_(first) {
  const ApiRequest& request = prepared_.request;
  head_ = {.endpoint = request.endpoint,
           .id = (request.endpoint == chat ? "chatcmpl-" : "cmpl-") + id,
           .created = std::time(nullptr),
           .model = model.name_of(prepared_.adapter),
           .fingerprint = model.fingerprint.empty() ? Json(nullptr) : Json(model.fingerprint)};
  choices_.resize(prepared_.prompts.size() * static_cast<std::size_t>(prepared_.choices));
  open_ = choices_.size();
  has_ids_ = request.return_token_ids.value_or(false);
  has_prompt_details_ = model.answers.has_prompt_details;
  has_metrics_ = model.answers.has_metrics && choices_.size() == 1;
  has_usage_event_ = is_stream() && request.include_usage.value_or(false);
  echoes_logprobs_ = echoes_logprobs(request);
  drops_output_ = prepared_.parameters.max_tokens == 0;
  stream_interval_ = std::max(model.answers.stream_interval, request.stream_interval.value_or(1));
  logprobs_style_ = {.endpoint = request.endpoint,
                     .tokenizer = model.tokenizer,
                     .tokens_as_ids = request.return_tokens_as_token_ids.value_or(model.answers.tokens_as_ids),
                     .count = requested_logprobs(request).value_or(0)};
  prompt_logprobs_.resize(prepared_.prompts.size());
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].text = prompt_of(i).text;
    choices_[i].splitter = prepared_.form.splitter(prepared_.request.tools);
  }
}

std::size_t Generation::prompt_index(std::size_t choice) const {
  return choice / static_cast<std::size_t>(prepared_.choices);
}

const PreparedPrompt& Generation::prompt_of(std::size_t choice) const {
  return prepared_.prompts[prompt_index(choice)];
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
  SamplingParameters parameters = prepared_.parameters;
  if (drops_output_ && !parameters.prompt_logprobs) {
    for (std::size_t i = 0; i < choices_.size(); ++i) end_choice(i, {.reason = "length"});
    return {};
  }
  random_bits_ = random_seed;
  if (drops_output_) parameters.max_tokens = 1;
  const std::uint64_t seed = prepared_.has_seed ? parameters.seed : random_seed;
  const auto first_parameters = std::make_shared<const SamplingParameters>(parameters);
  // In one piece the choices share the log probabilities of their prompt. An event of a stream cannot wait for those.
  if (!is_stream()) parameters.prompt_logprobs.reset();
  const auto other_parameters = std::make_shared<const SamplingParameters>(std::move(parameters));
  std::vector<Sequence> sequences;
  for (std::size_t i = 0; i < choices_.size(); ++i)
    sequences.push_back({.ticket = first_ + i,
                         .prompt = prompt_of(i).ids,
                         .parameters = is_first_of_prompt(i) ? first_parameters : other_parameters,
                         .seed = seed + i % static_cast<std::size_t>(prepared_.choices),
                         .priority = prepared_.request.priority.value_or(0),
                         .cache_salt = prepared_.request.cache_salt.value_or(""),
                         .adapter = loaded_adapter(prepared_)});
  return sequences;
}

AnswerEnd Generation::end_of(const RequestEvent& event) const {
  AnswerEnd end{.reason = event.finished == FinishReason::length || drops_output_ ? "length" : "stop"};
  if (drops_output_) return end;
  if (event.stop_text >= 0) end.stop_reason = prepared_.parameters.stop[static_cast<std::size_t>(event.stop_text)];
  if (event.stop_id >= 0) end.stop_reason = event.stop_id;
  return end;
}

AnswerUsage Generation::usage() const {
  AnswerUsage usage;
  for (const PreparedPrompt& prompt : prepared_.prompts) usage.prompt_tokens += std::ssize(*prompt.ids);
  for (const Choice& choice : choices_) usage.completion_tokens += choice.token_count;
  if (!has_prompt_details_) return usage;
  usage.cached_tokens = 0;
  for (std::size_t i = 0; i < choices_.size(); ++i)
    if (is_first_of_prompt(i)) *usage.cached_tokens += choices_[i].cached_tokens;
  return usage;
}

void Generation::take(const SequenceEvent& event) {
  const auto index = static_cast<std::size_t>(event.ticket - first_);
  Choice& choice = choices_[index];
  if (is_over() || choice.is_over) return;
  if (event.event.finished == FinishReason::failed) return fail(event.event);
  if (is_stream() && !has_begun_) begin_stream();
  choice.cached_tokens = event.event.cached_tokens;
  append(index, event.event);
  if (event.event.finished != FinishReason::none) return end_choice(index, end_of(event.event));
  // The first event is sent at once, and so is the last.
  if (is_stream() && (!choice.has_event || choice.unsent_count >= stream_interval_)) send_unsent(index, std::nullopt);
}

void Generation::take_times(const SequenceTimes& times) { times_ = times; }

// As vLLM's --enable-per-request-metrics.
void Generation::add_metrics(Json& answer) const {
  if (has_metrics_) answer["metrics"] = metrics_json(times_);
}

void Generation::append(std::size_t index, const RequestEvent& event) {
  Choice& choice = choices_[index];
  if (!event.prompt_logprobs.empty()) {
    prompt_logprobs_[prompt_index(index)] = event.prompt_logprobs;
    if (is_stream() && echoes_logprobs_) choice.logprobs = event.prompt_logprobs;
  }
  if (drops_output_) return;
  ++choice.token_count;
  ++choice.unsent_count;
  if (has_ids_) choice.tokens.push_back(event.token);
  if (event.logprobs) choice.logprobs.push_back(*event.logprobs);
  if (is_stream()) choice.held.take(event);
  add_new_text(index, event.text);
}

void Generation::add_new_text(std::size_t index, const std::string& text) {
  Choice& choice = choices_[index];
  if (choice.splitter) {
    add_events(index, choice.splitter->push(text));
  } else {
    choice.text += text;
  }
}

void Generation::add_events(std::size_t index, AnswerEvents events) {
  using Kind = AnswerEvent::Kind;
  Choice& choice = choices_[index];
  for (AnswerEvent& event : events) {
    choice.parts.add(event);
    if (!is_stream()) continue;
    const bool continues =
        event.kind == Kind::content || event.kind == Kind::reasoning || event.kind == Kind::call_arguments;
    if (continues) {
      add_text(choice.events, event.kind, event.text);
    } else {
      choice.events.push_back(std::move(event));
    }
  }
}

void Generation::end_choice(std::size_t index, AnswerEnd end) {
  Choice& choice = choices_[index];
  if (choice.splitter) {
    add_events(index, choice.splitter->finish());
    // Only whole calls count: what is cut ends with another reason.
    const bool has_calls = !choice.parts.calls.empty() && prepared_.form.tool_choice.kind != ToolChoice::Kind::named;
    if (has_calls && std::string_view(end.reason) == "stop") end.reason = "tool_calls";
  }
  if (is_stream()) send_unsent(index, end);
  choice.is_over = true;
  choice.end = std::move(end);
  if (--open_ == 0) finish_all();
}

Json Generation::taken_logprobs(Choice& choice) const {
  return logprobs_json(logprobs_style_, std::exchange(choice.logprobs, {}), choice.text_offset);
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
    const std::string echoed = std::exchange(choices_[i].text, {});
    if (!echoed.empty()) send(text_event(head_, i, echoed, nullptr, nullptr, std::nullopt, nullptr), i);
  }
}

void Generation::send(Json json, std::size_t choice, bool is_last) {
  if (prepared_.request.continuous_usage_stats.value_or(false))
    json["usage"] = usage_json({std::ssize(*prompt_of(choice).ids), choices_[choice].token_count});
  if (is_last) {
    json["system_fingerprint"] = head_.fingerprint;
    add_metrics(json);
  }
  send_event(json);
}

void Generation::send_unsent(std::size_t index, const std::optional<AnswerEnd>& end) {
  if (!has_begun_) begin_stream();
  if (choices_[index].splitter) {
    send_deltas(index, end);
  } else {
    send_text(index, end);
  }
  choices_[index].has_event = true;
  choices_[index].unsent_count = 0;
}

void Generation::send_text(std::size_t index, const std::optional<AnswerEnd>& end) {
  Choice& choice = choices_[index];
  // The first event of a completion has the ids of its prompt. It has the prompt itself, too, where that is echoed.
  const bool is_first = head_.endpoint != chat && !choice.has_event;
  const std::string text = std::exchange(choice.text, {});
  const std::vector<int> tokens = std::exchange(choice.tokens, {});
  const Json prompt_ids = is_first && is_first_of_prompt(index) ? prompt_ids_of(index) : Json(nullptr);
  Json json =
      text_event(head_, index, text, taken_logprobs(choice), has_ids_ ? Json(tokens) : Json(nullptr), end, prompt_ids);
  send(std::move(json), index, end && open_ == 1 && !has_usage_event_);
}

// What belongs to tokens, and not to their text, is in the last delta.
void Generation::send_deltas(std::size_t index, const std::optional<AnswerEnd>& end) {
  Choice& choice = choices_[index];
  std::vector<Json> deltas = deltas_of(index, std::exchange(choice.events, {}));
  const Json no_ids = has_ids_ ? Json::array() : Json(nullptr);
  for (std::size_t i = 0; i + 1 < deltas.size(); ++i)
    send(delta_event(head_, index, std::move(deltas[i]), nullptr, no_ids, std::nullopt), index);
  const std::vector<int> tokens = std::exchange(choice.tokens, {});
  Json json = delta_event(head_, index, std::move(deltas.back()), taken_logprobs(choice),
                          has_ids_ ? Json(tokens) : Json(nullptr), end);
  send(std::move(json), index, end && open_ == 1 && !has_usage_event_);
}

// The answer of a choice in one piece.
AnswerChoice Generation::whole(std::size_t index) {
  Choice& choice = choices_[index];
  const std::vector<TokenLogprobs>& of_prompt = prompt_logprobs_[prompt_index(index)];
  if (echoes_logprobs_) choice.logprobs.insert(choice.logprobs.begin(), of_prompt.begin(), of_prompt.end());
  AnswerChoice answer{.text = std::move(choice.text) + choice.parts.content,
                      .tokens = std::move(choice.tokens),
                      .logprobs = taken_logprobs(choice),
                      .end = choice.end};
  if (prepared_.form.shows_reasoning) answer.reasoning = std::move(choice.parts.reasoning);
  answer.is_call_alone = prepared_.form.must_call();
  for (std::size_t call = 0; call < choice.parts.calls.size(); ++call)
    answer.calls.push_back(tool_call(call_id(index, call), choice.parts.calls[call]));
  return answer;
}

void Generation::finish_all() {
  if (is_stream()) {
    if (has_usage_event_) {
      Json json = usage_event(head_, usage());
      json["system_fingerprint"] = head_.fingerprint;
      add_metrics(json);
      send_event(json);
    }
    return end_stream();
  }
  if (is_large()) return leave_unwritten();
  send_answer(whole_answer());
}

bool Generation::is_large() const {
  const auto entries_of = [](const std::vector<TokenLogprobs>& list) {
    return list.empty() ? std::size_t{0} : list.size() * (1 + list.back().top.size());
  };
  std::size_t all = 0;
  for (const Choice& choice : choices_)
    all += static_cast<std::size_t>(choice.token_count) + entries_of(choice.logprobs);
  for (const auto& list : prompt_logprobs_) all += entries_of(list);
  for (const PreparedPrompt& prompt : prepared_.prompts) all += has_ids_ ? prompt.ids->size() : 0;
  return all > kMostWrittenAtOnce;
}

Json Generation::whole_answer() {
  std::vector<Json> prompt_logprobs(prompt_logprobs_.size());
  for (std::size_t i = 0; i < prompt_logprobs.size() && prepared_.request.prompt_logprobs; ++i)
    prompt_logprobs[i] =
        prompt_logprobs_json(*prepared_.request.prompt_logprobs, logprobs_style_.tokenizer, prompt_logprobs_[i]);
  std::vector<Json> choices;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    AnswerChoice answer = whole(i);
    answer.prompt_logprobs = prompt_logprobs[prompt_index(i)];
    choices.push_back(whole_choice(head_.endpoint, i, answer, has_ids_, prompt_ids_of(i)));
  }
  const bool has_text = prepared_.request.return_prompt_text.value_or(false);
  Json answer = weft::whole_answer(head_, std::move(choices), usage(), prompt_logprobs[0], prompt_ids_of(0),
                                   has_text ? Json(prepared_.prompt_text) : Json(nullptr));
  add_metrics(answer);
  return answer;
}

void Generation::cut_stream() {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].is_over) continue;
    add_new_text(i, choices_[i].held.rest(logprobs_style_.tokenizer, *prompt_of(i).ids, prepared_.parameters));
    end_choice(i, {.reason = "abort"});
  }
}

}  // namespace weft
