// What requests must be, and their state when they are queued.

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/engine.h"

namespace weft {
namespace {

// The keys and values of different adapters differ, so they share nothing in the prefix cache; nor do those of an
// adapter and of the one that had its name before.
std::string salt_of(const NewRequest& request) {
  if (request.adapter == nullptr) return request.cache_salt;
  constexpr char kEnd = '\0';  // no salt of a request has it
  return request.cache_salt + kEnd + std::to_string(request.adapter->id);
}

}  // namespace

void Engine::check_generates() const {
  const ModelConfig& config = runner_->facts().config;
  USER_CHECK(config.generates(), "[{}] generates no text: {}", runner_->checkpoint().path(),
             config.is_classifier() ? "it scores texts (/v1/rerank, /v1/score and /classify of weft serve)"
                                    : "its tokens attend to later ones, and it computes embeddings (weft embed, "
                                      "/v1/embeddings of weft serve)");
}

void Engine::check_request(const NewRequest& request) const {
  request.parameters.check();
  const std::int64_t choices = runner_->model().adapters().choices();
  CHECK(request.adapter == nullptr || request.adapter->choice < choices, "there is no adapter {} among {}",
        request.adapter->choice, choices);
  const std::vector<int>& prompt = *request.prompt;
  USER_CHECK(!prompt.empty(), "[prompt] must hold at least one token, but is empty");
  if (!request.pooling) check_generates();
  // A pooled text is followed by no token.
  USER_CHECK(std::ssize(prompt) < max_model_len() + (request.pooling ? 1 : 0),
             "[prompt] must be {} the context of {} tokens, but has {}", request.pooling ? "at most" : "shorter than",
             max_model_len(), prompt.size());
  const SamplingParameters& parameters = request.parameters;
  const auto check = [&](const char* name, int id) {
    USER_CHECK(id >= 0 && id < runner_->vocabulary_size(), "[{}] a token must be in [0, {}), but is {}", name,
               runner_->vocabulary_size(), id);
  };
  for (const int id : prompt) check("prompt", id);
  for (const int id : parameters.stop_ids) check("stop_ids", id);
  for (const int id : parameters.allowed_ids.value_or(std::vector<int>())) check("allowed_ids", id);
  for (const std::vector<int>& word : parameters.bad_words)
    for (const int id : word) check("bad_words", id);
  for (const TokenBias& bias : parameters.logit_bias) check("logit_bias", bias.id);
  // The last token is not computed.
  const std::int64_t longest =
      std::min(max_model_len() - std::ssize(prompt), parameters.max_tokens) + std::ssize(prompt) - 1;
  USER_CHECK(longest <= page_count_ * page_tokens(),
             "[prompt] prompt and answer may have {} tokens, but all {} KV pages together hold {}", longest + 1,
             page_count_, page_count_ * page_tokens());
}

int Engine::add(std::vector<int> prompt, SamplingParameters parameters) {
  return add(NewRequest{.prompt = std::make_shared<const std::vector<int>>(std::move(prompt)),
                        .parameters = std::move(parameters)});
}

int Engine::add(NewRequest added) {
  check_request(added);
  auto request = std::make_unique<Request>();
  const SamplingParameters& parameters = request->parameters = std::move(added.parameters);
  request->id = next_request_++;
  request->prompt_ids = std::move(added.prompt);
  request->prompt = *request->prompt_ids;
  request->priority = added.priority;
  request->cache_salt = salt_of(added);
  if (added.adapter != nullptr) request->adapter = added.adapter->choice;
  request->loaded_adapter = std::move(added.adapter);
  request->pooling = added.pooling;
  // Other models have one type for all tokens.
  if (runner_->facts().config.token_type_count > 1) request->second_text = added.second_text;
  request->wants_logits = !added.pooling;
  // The hidden states of tokens that are found in the prefix cache are not there.
  if (added.pooling && *added.pooling != Pooling::last) request->first_logit_row = 0;
  if (parameters.prompt_logprobs) {
    request->first_logit_row = 0;
    request->prompt_logprobs.push_back({.chosen = {.id = request->prompt.front()}});
  }
  request->stops = StopTexts(parameters.stop, parameters.includes_stop);
  request->masks = LogitMasks(parameters, ends_);
  if (proposer_ != nullptr) request->kept = proposer_->begin(*request);
  request->draft.reserve(static_cast<std::size_t>(speculation_.num_speculative_tokens));
  if (parameters.constraint != nullptr) request->constraint = parameters.constraint->begin();
  if (tokenizer_ != nullptr) {
    request->detokenizer.emplace(*tokenizer_,
                                 DecodeOptions{.skip_special = parameters.skips_special,
                                               .shown_special = parameters.shown_special,
                                               .spaces_between_special = parameters.spaces_between_special});
    request->detokenizer->continue_after(request->prompt);
  }
  Request& queued = *requests_.emplace(request->id, std::move(request)).first->second;
  scheduler_.add(queued);
  return queued.id;
}

}  // namespace weft
