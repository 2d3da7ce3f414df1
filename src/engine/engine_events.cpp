// From the logits of a step to the events of its requests.

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/engine.h"

namespace weft {

std::string Engine::score_prompt(Request& request, const Tensor& logits, std::int64_t first_row) {
  if (!request.parameters.prompt_logprobs) return "";
  // The row of the prompt's last token is for the first token of the output.
  const std::int64_t end = std::min<std::int64_t>(request.computed, std::ssize(request.prompt) - 1);
  for (std::int64_t row = first_row; request.first_logit_row < end; ++row, ++request.first_logit_row) {
    std::string error = take_logits(request, logits, row);
    if (!error.empty()) return error;
    request.prompt_logprobs.push_back(
        logprobs_of(logits_, request.token(request.first_logit_row + 1), *request.parameters.prompt_logprobs));
  }
  return "";
}

std::string Engine::mask_logits(Request& request) {
  if (request.parameters.logprobs) raw_logits_ = logits_;
  const bool has_constraint = request.constraint != nullptr;
  if (has_constraint) {
    try {
      request.constraint->apply(logits_);
    } catch (const UserError& error) {
      return error.what();
    }
  }
  request.masks.apply(logits_, request.output, has_constraint);
  const bool has_token = !request.masks.is_active() ||
                         std::any_of(logits_.begin(), logits_.end(), [](float logit) { return logit > -INFINITY; });
  if (has_token) return "";
  return fmt::format("[sampling] the masks of a request leave no token after {} tokens of its output",
                     request.output.size());
}

// Samples a token if all tokens are computed, and another one as long as the last one is the next of the draft. Blocks
// are published only after the check for numbers that their type does not hold, so that no later request is computed
// from them.
void Engine::finish_chunk(const Chunk& chunk, const Tensor& logits, std::int64_t first_row, std::int64_t first_hidden) {
  Request& request = request_of(*chunk.sequence);
  const std::int64_t begin = request.computed - chunk.rows;
  request.computed -= chunk.draft_rows;
  std::string error = runner_->describe_overflow(request.pages, begin, request.computed);
  if (error.empty()) error = score_prompt(request, logits, first_row);
  if (!error.empty()) return fail(request, std::move(error));
  scheduler_.publish(request);
  if (request.pooling) return pool(request, chunk, first_hidden);
  if (request.computed != request.token_count()) return;  // more of the prompt follows
  const std::int64_t row = first_row + chunk.logit_rows - 1 - chunk.draft_rows;
  std::int64_t kept = 0;
  bool goes_on = sample(request, logits, row);
  while (goes_on && kept < chunk.draft_rows && request.output.back() == request.draft[static_cast<std::size_t>(kept)]) {
    ++kept;
    ++request.computed;
    error = runner_->describe_overflow(request.pages, request.computed - 1, request.computed);
    if (!error.empty()) return fail(request, std::move(error));
    goes_on = sample(request, logits, row + kept);
  }
  if (chunk.draft_rows == 0) return;
  proposed_tokens_ += chunk.draft_rows;
  kept_tokens_ += kept;
  if (goes_on) request.pace.report(chunk.draft_rows, kept);
}

bool Engine::sample(Request& request, const Tensor& logits, std::int64_t row) {
  std::string error = take_logits(request, logits, row);
  if (error.empty()) error = mask_logits(request);
  if (!error.empty()) {
    fail(request, std::move(error));
    return false;
  }
  try {
    events_.push_back(advance(request, logits_));
  } catch (const UserError& thrown) {
    fail(request, thrown.what());
    return false;
  }
  if (events_.back().finished == FinishReason::none) return true;
  end(request);
  return false;
}

void Engine::end(Request& request) {
  std::string error = runner_->describe_overflow_on_device(request.pages, request.computed);
  if (error.empty()) {
    scheduler_.publish_end(request);
  } else {
    events_.back().finished = FinishReason::failed;
    events_.back().error = std::move(error);
    events_.back().cause = FailureCause::answer;
  }
  cancel(request.id);
}

void Engine::fail(const Request& request, std::string error) {
  events_.push_back({.request = request.id,
                     .finished = FinishReason::failed,
                     .error = std::move(error),
                     .cause = FailureCause::answer});
  cancel(request.id);
}

RequestEvent Engine::advance(Request& request, std::span<const float> logits) {
  RequestEvent event{.request = request.id, .cached_tokens = request.cached_tokens};
  const SamplingParameters& parameters = request.parameters;
  event.token = sampler_.sample(logits, parameters, request.prompt, request.output);
  request.output.push_back(event.token);
  if (request.constraint != nullptr) request.constraint->accept(event.token);
  if (parameters.logprobs) event.logprobs = logprobs_of(raw_logits_, event.token, *parameters.logprobs);
  event.prompt_logprobs = std::exchange(request.prompt_logprobs, {});
  const std::vector<int>& ids = parameters.stop_ids;
  if (ends_text(event.token) && !parameters.ignore_end) {
    event.finished = FinishReason::stop;
    event.text = request.stops.finish() + request.last_text();
  } else if (std::find(ids.begin(), ids.end(), event.token) != ids.end()) {
    event.finished = FinishReason::stop;
    event.stop_id = event.token;
    event.text = request.stops.finish();
    if (parameters.includes_stop) event.text += request.text_of(event.token);
    event.text += request.last_text();
  } else {
    add_text(request, event);
  }
  return event;
}

// The text of a token that is neither an end nor a stop token, and whether it ends the answer.
void Engine::add_text(Request& request, RequestEvent& event) {
  const SamplingParameters& parameters = request.parameters;
  StopTexts& stops = request.stops;
  const auto count = static_cast<std::int64_t>(request.output.size());
  const bool looks = count > parameters.min_tokens;
  const bool is_hidden = request.detokenizer && request.detokenizer->is_hidden(event.token);
  event.text = is_hidden ? stops.push_special(tokenizer_->token_bytes(event.token), looks)
                         : stops.push(request.text_of(event.token), looks);
  const bool is_full = count >= parameters.max_tokens || request.token_count() >= max_model_len();
  if (is_full && !stops.has_stopped()) event.text += stops.push(request.last_text(), looks);
  if (stops.has_stopped()) {
    event.finished = FinishReason::stop;
    event.stop_text = stops.stopped_by();
  } else if (is_full) {
    event.finished = FinishReason::length;
    event.text += stops.finish();
  }
}

}  // namespace weft
