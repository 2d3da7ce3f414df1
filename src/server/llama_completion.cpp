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

LlamaCompletion::LlamaCompletion(PreparedRequest prepared, const ServedModel& model, Ticket ticket,
                                 std::shared_ptr<HttpReply> reply)
    : RunningRequest(std::move(reply), prepared.request.stream.value_or(false)),
      prepared_(std::move(prepared)),
      model_(model.name_of(prepared_.adapter)),
      tokenizer_(model.tokenizer),
      context_(model.max_model_len),
      ticket_(ticket) {}

std::vector<Sequence> LlamaCompletion::begin(std::uint64_t random_seed) {
  // The answer has the seed, and a request can have each number of 32 bits but the one that asks for any seed.
  seed_ = prepared_.has_seed ? prepared_.parameters.seed : random_seed % kLlamaRandomSeed;
  auto parameters = std::make_shared<SamplingParameters>(prepared_.parameters);
  parameters->max_tokens = std::max<std::int64_t>(parameters->max_tokens, 1);
  return {{.ticket = ticket_,
           .prompt = prepared_.prompts[0].ids,
           .parameters = std::move(parameters),
           .seed = seed_,
           .adapter = loaded_adapter(prepared_)}};
}

std::vector<Ticket> LlamaCompletion::open_tickets() const {
  return is_over() ? std::vector<Ticket>() : std::vector<Ticket>{ticket_};
}

void LlamaCompletion::take(const SequenceEvent& taken) {
  if (is_over()) return;
  const RequestEvent& event = taken.event;
  if (event.finished == FinishReason::failed) return fail(event);
  last_ = MonotonicClock::now();
  if (tokens_.empty()) first_ = last_;
  cached_tokens_ = event.cached_tokens;
  // The prompt alone was asked for: its tokens are in the cache now.
  if (prepared_.parameters.max_tokens == 0) return finish("limit", "");
  tokens_.push_back(event.token);
  text_ += event.text;
  if (event.logprobs && !is_stream()) logprobs_.push_back(*event.logprobs);
  if (is_stream()) {
    held_.take(event);
    send_event(part(event));
  }
  if (event.finished == FinishReason::none) return;
  const bool is_word = event.stop_text >= 0;
  finish(event.finished == FinishReason::length ? "limit"
         : is_word                              ? "word"
                                                : "eos",
         is_word ? prepared_.parameters.stop[static_cast<std::size_t>(event.stop_text)] : "");
}

void LlamaCompletion::finish(const char* stop_type, const std::string& stopping_word) {
  const Json answer = last(stop_type, stopping_word);
  if (!is_stream()) return send_answer(answer);
  send_event(answer);
  end_stream();
}

void LlamaCompletion::cut_stream() {
  cut_text_ = held_.rest(tokenizer_, *prepared_.prompts[0].ids, prepared_.parameters);
  finish("none", "");
}

Json LlamaCompletion::probabilities(std::span<const TokenLogprobs> tokens) const {
  return llama_probabilities(prepared_.request.n_probs.value_or(0), tokenizer_, tokens);
}

Json LlamaCompletion::part(const RequestEvent& event) const {
  Json json{{"index", 0},
            {"content", event.text},
            {"tokens", Json::array({event.token})},
            {"stop", false},
            {"id_slot", -1},
            {"tokens_predicted", tokens_.size()},
            {"tokens_evaluated", prepared_.prompts[0].ids->size()}};
  if (prepared_.request.timings_per_token.value_or(false)) json["timings"] = timings();
  if (event.logprobs) json["completion_probabilities"] = probabilities({&*event.logprobs, 1});
  return json;
}

// A stream has sent its content, but for what was held back, and the probabilities already.
Json LlamaCompletion::last(const char* stop_type, const std::string& stopping_word) const {
  const bool has_tokens = !is_stream() && prepared_.request.return_token_ids.value_or(false);
  const std::size_t prompt = prepared_.prompts[0].ids->size();
  Json json{{"index", 0},
            {"content", is_stream() ? cut_text_ : text_},
            {"tokens", has_tokens ? Json(tokens_) : Json::array()},
            {"id_slot", -1},
            {"stop", true},
            {"model", model_},
            {"tokens_predicted", tokens_.size()},
            {"tokens_evaluated", prompt},
            {"generation_settings", settings()},
            {"prompt", prepared_.prompt_text},
            {"has_new_line", text_.find('\n') != std::string::npos},
            {"truncated", false},
            {"stop_type", stop_type},
            {"stopping_word", stopping_word},
            {"tokens_cached", prompt + tokens_.size()},
            {"timings", timings()}};
  if (!logprobs_.empty()) json["completion_probabilities"] = probabilities(logprobs_);
  return json;
}

Json LlamaCompletion::settings() const {
  Json json = llama_settings(prepared_.parameters);
  json["seed"] = seed_;
  json["n_ctx"] = context_;
  json["n_predict"] = prepared_.request.n_predict.value_or(-1);
  json["stop"] = prepared_.parameters.stop;
  json["stream"] = is_stream();
  json["n_probs"] = prepared_.request.n_probs.value_or(0);
  json["logit_bias"] = biases_json(prepared_.parameters.logit_bias);
  return json;
}

// The time of the prompt is that until the first token, with what the request waited.
Json LlamaCompletion::timings() const {
  const std::size_t predicted = tokens_.size(), cached = static_cast<std::size_t>(cached_tokens_);
  const std::size_t prompt = prepared_.prompts[0].ids->size() - cached;
  const double prompt_ms = milliseconds(first_ - begun_), predicted_ms = milliseconds(last_ - first_);
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
