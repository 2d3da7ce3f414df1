#include "server/sampling_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/sampling/logit_masks.h"
#include "server/api_error.h"
#include "server/llama_endpoints.h"
#include "server/llama_samplers.h"

namespace weft {
namespace {

constexpr double kGreedyBelow = 1e-5;

// Each token of a text gets the bias of the text, and several biases of a token are added.
void add_text_biases(std::map<int, double>& biases, const ApiRequest& request, const ServedModel& model) {
  for (const auto& [of, bias] : request.text_bias) {
    if (const int* id = std::get_if<int>(&of)) {
      biases[*id] += bias;
      continue;
    }
    if (model.tokenizer == nullptr)
      throw wrong_value("[logit_bias] must have no texts, as the model has no tokenizer", "logit_bias");
    try {
      const auto& text = std::get<std::string>(of);
      for (const int id : model.tokenizer->encode(text, {.parse_special = false, .add_special = false}))
        biases[id] += bias;
    } catch (const UserError& error) {
      throw wrong_value(error.what(), "logit_bias");
    }
  }
}

std::vector<TokenBias> biases_of(const ApiRequest& request, const ServedModel& model) {
  std::map<int, double> given = request.logit_bias;
  add_text_biases(given, request, model);
  std::vector<TokenBias> biases;
  for (const auto& [id, bias] : given) {
    check_token(id, model.vocabulary_size, "logit_bias");
    const bool rules_out = is_llama(request.endpoint) && bias == -INFINITY;
    if (std::abs(bias) > std::numeric_limits<float>::max() && !rules_out)
      throw wrong_value(fmt::format("[logit_bias] of token {} must be a number of float32, but is {}", id, bias),
                        "logit_bias");
    biases.push_back({id, static_cast<float>(bias)});
  }
  return biases;
}

std::vector<std::vector<int>> bad_words_of(const ApiRequest& request, const ServedModel& model) {
  std::vector<std::vector<int>> words;
  if (request.bad_words.empty()) return words;
  if (model.tokenizer == nullptr)
    throw wrong_value("[bad_words] must be empty, as the model has no tokenizer", "bad_words");
  try {
    for (const std::string& word : request.bad_words)
      for (std::vector<int>& ids : bad_word_tokens(*model.tokenizer, word)) words.push_back(std::move(ids));
  } catch (const UserError& error) {
    throw wrong_value(error.what(), "bad_words");
  }
  return words;
}

void check_logprobs(const std::optional<std::int64_t>& count, const ServedModel& model, const char* field) {
  if (!count) return;
  const std::int64_t most = model.answers.max_logprobs < 0 ? model.vocabulary_size : model.answers.max_logprobs;
  const std::int64_t asked = *count < 0 ? model.vocabulary_size : *count;
  if (asked > most)
    throw wrong_value(fmt::format("[{}] must be at most {}, which is --max-logprobs of this server, but is {}{}", field,
                                  most, *count, *count < 0 ? ", which is all" : ""),
                      field);
}

// The number that is enough for both; -1 is all.
std::optional<std::int64_t> larger(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) {
  if (!a || !b) return a ? a : b;
  return *a < 0 || *b < 0 ? -1 : std::max(*a, *b);
}

}  // namespace

std::optional<std::int64_t> requested_logprobs(const ApiRequest& request) {
  if (is_llama(request.endpoint)) return request.n_probs.value_or(0) > 0 ? request.n_probs : std::nullopt;
  if (!answers_messages(request.endpoint)) return request.logprobs;
  if (!request.wants_logprobs.value_or(false)) return std::nullopt;
  return request.top_logprobs.value_or(0);
}

bool echoes_logprobs(const ApiRequest& request) {
  return request.endpoint == completions && request.echo.value_or(false) && request.logprobs.has_value();
}

SamplingParameters requested_sampling(const ApiRequest& request, const ServedModel& model) {
  SamplingParameters parameters = is_llama(request.endpoint) ? model.llama_defaults : model.defaults;
  const auto take = [](auto& target, const auto& given) {
    if (given) target = *given;
  };
  take(parameters.temperature, request.temperature);
  take(parameters.top_k, request.top_k);
  take(parameters.top_p, request.top_p);
  take(parameters.min_p, request.min_p);
  take(parameters.repetition_penalty, request.repetition_penalty);
  take(parameters.repetition_penalty, request.repeat_penalty);
  take(parameters.penalty_window, request.repeat_last_n);
  take(parameters.frequency_penalty, request.frequency_penalty);
  take(parameters.presence_penalty, request.presence_penalty);
  take(parameters.ignore_end, request.ignore_eos);
  take(parameters.min_tokens, request.min_tokens);
  take(parameters.includes_stop, request.include_stop_str_in_output);
  take(parameters.skips_special, request.skip_special_tokens);
  take(parameters.spaces_between_special, request.spaces_between_special_tokens);
  if (parameters.temperature < kGreedyBelow) parameters.temperature = 0;
  if (request.samplers) use_samplers(parameters, *request.samplers);
  for (const int id : request.stop_token_ids) check_token(id, model.vocabulary_size, "stop_token_ids");
  if (request.allowed_token_ids)
    for (const int id : *request.allowed_token_ids) check_token(id, model.vocabulary_size, "allowed_token_ids");
  check_logprobs(request.logprobs, model, "logprobs");
  check_logprobs(request.top_logprobs, model, "top_logprobs");
  check_logprobs(request.n_probs, model, "n_probs");
  check_logprobs(request.prompt_logprobs, model, "prompt_logprobs");
  parameters.stop = request.stop;
  parameters.stop_ids = request.stop_token_ids;
  parameters.allowed_ids = request.allowed_token_ids;
  parameters.logit_bias = biases_of(request, model);
  parameters.bad_words = bad_words_of(request, model);
  parameters.logprobs = requested_logprobs(request);
  // A stream has no prompt_logprobs; 0 is accepted there.
  if (!request.stream.value_or(false)) parameters.prompt_logprobs = request.prompt_logprobs;
  if (echoes_logprobs(request)) parameters.prompt_logprobs = larger(parameters.prompt_logprobs, request.logprobs);
  return parameters;
}

}  // namespace weft
