#include "server/llama_completion.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "server/llama_endpoints.h"
#include "server/logprobs_json.h"

namespace weft {
namespace {

double milliseconds(MonotonicClock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// JSON has no infinity: false rules the token out.
Json biases_json(const std::vector<TokenBias>& biases) {
  Json list = Json::array();
  for (const TokenBias& one : biases)
    list.push_back({{"bias", std::isinf(one.bias) ? Json(false) : Json(one.bias)}, {"token", one.id}});
  return list;
}

}  // namespace

LlamaCompletion::LlamaCompletion(PreparedRequest prepared, const ServedModel& model, Ticket first,
                                 std::shared_ptr<HttpReply> reply)
    : RunningRequest(std::move(reply), prepared.request.stream.value_or(false)),
      prepared_(std::move(prepared)),
      model_(model.name_of(prepared_.adapter)),
      tokenizer_(model.tokenizer),
      context_(model.max_model_len),
      first_ticket_(first),
      answers_(prepared_.prompts.size() * static_cast<std::size_t>(prepared_.choices),
               Answer{.first = begun_, .last = begun_}),
      open_(answers_.size()) {}

std::vector<Sequence> LlamaCompletion::begin(std::uint64_t random_seed) {
  // The answer has the seed, and a request can have each number of 32 bits but the one that asks for any seed.
  seed_ = prepared_.has_seed ? prepared_.parameters.seed : random_seed % kLlamaRandomSeed;
  auto parameters = std::make_shared<SamplingParameters>(prepared_.parameters);
  parameters->max_tokens = std::max<std::int64_t>(parameters->max_tokens, 1);
  std::vector<Sequence> sequences;
  for (std::size_t i = 0; i < answers_.size(); ++i)
    sequences.push_back({.ticket = first_ticket_ + i,
                         .prompt = prompt_of(i).ids,
                         .parameters = parameters,
                         .seed = seed_of(i),
                         .adapter = loaded_adapter(prepared_)});
  return sequences;
}

const PreparedPrompt& LlamaCompletion::prompt_of(std::size_t index) const {
  return prepared_.prompts[index / static_cast<std::size_t>(prepared_.choices)];
}

std::uint64_t LlamaCompletion::seed_of(std::size_t index) const {
  return seed_ + index % static_cast<std::size_t>(prepared_.choices);
}

std::vector<Ticket> LlamaCompletion::open_tickets() const {
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < answers_.size() && !is_over(); ++i)
    if (answers_[i].stop_type == nullptr) tickets.push_back(first_ticket_ + i);
  return tickets;
}

void LlamaCompletion::take(const SequenceEvent& taken) {
  const auto index = static_cast<std::size_t>(taken.ticket - first_ticket_);
  Answer& answer = answers_[index];
  if (is_over() || answer.stop_type != nullptr) return;
  const RequestEvent& event = taken.event;
  if (event.finished == FinishReason::failed) return fail(event);
  answer.last = MonotonicClock::now();
  if (answer.tokens.empty()) answer.first = answer.last;
  answer.cached_tokens = event.cached_tokens;
  // The prompt alone was asked for: its tokens are in the cache now.
  if (prepared_.parameters.max_tokens == 0) return finish(index, "limit", "");
  answer.tokens.push_back(event.token);
  answer.text += event.text;
  if (event.logprobs && !is_stream()) answer.logprobs.push_back(*event.logprobs);
  if (is_stream()) {
    answer.held.take(event);
    send_event(part(index, event));
  }
  if (event.finished == FinishReason::none) return;
  const bool is_word = event.stop_text >= 0;
  finish(index,
         event.finished == FinishReason::length ? "limit"
         : is_word                              ? "word"
                                                : "eos",
         is_word ? prepared_.parameters.stop[static_cast<std::size_t>(event.stop_text)] : "");
}

void LlamaCompletion::finish(std::size_t index, const char* stop_type, const std::string& stopping_word) {
  answers_[index].stop_type = stop_type;
  answers_[index].stopping_word = stopping_word;
  --open_;
  if (is_stream()) send_event(last(index));
  if (open_ > 0) return;
  if (is_stream()) return end_stream();
  std::size_t written = 0;
  for (const Answer& answer : answers_) written += answer.tokens.size() + answer.logprobs.size();
  if (written > kMostWrittenAtOnce) return leave_unwritten();
  send_answer(whole_answer());
}

Json LlamaCompletion::whole_answer() {
  if (answers_.size() == 1) return last(0);
  Json list = Json::array();
  for (std::size_t i = 0; i < answers_.size(); ++i) list.push_back(last(i));
  return list;
}

void LlamaCompletion::cut_stream() {
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    Answer& answer = answers_[i];
    if (answer.stop_type != nullptr) continue;
    answer.cut_text = answer.held.rest(tokenizer_, *prompt_of(i).ids, prepared_.parameters);
    finish(i, "none", "");
  }
}

Json LlamaCompletion::probabilities(std::span<const TokenLogprobs> tokens) const {
  return llama_probabilities(prepared_.request.n_probs.value_or(0), tokenizer_, tokens);
}

Json LlamaCompletion::part(std::size_t index, const RequestEvent& event) const {
  Json json{{"index", index},
            {"content", event.text},
            {"tokens", Json::array({event.token})},
            {"stop", false},
            {"id_slot", -1},
            {"tokens_predicted", answers_[index].tokens.size()},
            {"tokens_evaluated", prompt_of(index).ids->size()}};
  if (prepared_.request.timings_per_token.value_or(false)) json["timings"] = timings(index);
  if (event.logprobs) json["completion_probabilities"] = probabilities({&*event.logprobs, 1});
  return json;
}

// A stream has sent its content, but for what was held back, and the probabilities already.
Json LlamaCompletion::last(std::size_t index) const {
  const Answer& answer = answers_[index];
  const bool has_tokens = !is_stream() && prepared_.request.return_token_ids.value_or(false);
  const std::size_t prompt = prompt_of(index).ids->size();
  Json json{{"index", index},
            {"content", is_stream() ? answer.cut_text : answer.text},
            {"tokens", has_tokens ? Json(answer.tokens) : Json::array()},
            {"id_slot", -1},
            {"stop", true},
            {"model", model_},
            {"tokens_predicted", answer.tokens.size()},
            {"tokens_evaluated", prompt},
            {"generation_settings", settings(index)},
            {"prompt", prompt_of(index).text},
            {"has_new_line", answer.text.find('\n') != std::string::npos},
            {"truncated", false},
            {"stop_type", answer.stop_type},
            {"stopping_word", answer.stopping_word},
            {"tokens_cached", prompt + answer.tokens.size()},
            {"timings", timings(index)}};
  if (!answer.logprobs.empty()) json["completion_probabilities"] = probabilities(answer.logprobs);
  return json;
}

Json LlamaCompletion::settings(std::size_t index) const {
  Json json = llama_settings(prepared_.parameters);
  json["seed"] = seed_of(index);
  json["n_ctx"] = context_;
  json["n_predict"] = prepared_.request.n_predict.value_or(-1);
  json["stop"] = prepared_.parameters.stop;
  json["stream"] = is_stream();
  json["n_probs"] = prepared_.request.n_probs.value_or(0);
  json["logit_bias"] = biases_json(prepared_.parameters.logit_bias);
  return json;
}

// The time of the prompt is that until the first token, with what the request waited.
Json LlamaCompletion::timings(std::size_t index) const {
  const Answer& answer = answers_[index];
  const std::size_t predicted = answer.tokens.size(), cached = static_cast<std::size_t>(answer.cached_tokens);
  const std::size_t prompt = prompt_of(index).ids->size() - cached;
  const double prompt_ms = milliseconds(answer.first - begun_), predicted_ms = milliseconds(answer.last - answer.first);
  const auto each = [](double time, std::size_t count) { return count > 0 ? time / static_cast<double>(count) : 0; };
  const auto rate = [](std::size_t count, double time) {
    return time > 0 ? 1e3 * static_cast<double>(count) / time : 0;
  };
  return {{"cache_n", cached},
          {"prompt_n", prompt},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", each(prompt_ms, prompt)},
          {"prompt_per_second", rate(prompt, prompt_ms)},
          {"predicted_n", predicted},
          {"predicted_ms", predicted_ms},
          {"predicted_per_token_ms", each(predicted_ms, predicted)},
          {"predicted_per_second", rate(predicted, predicted_ms)}};
}

}  // namespace weft
