#pragma once

// The JSON of log probabilities, with the keys of OpenAI's and vLLM's.

#include <cstdint>
#include <span>

#include "base/json.h"
#include "engine/sampling/logprobs.h"
#include "io/tokenizer.h"
#include "server/api_request.h"

namespace weft {

struct LogprobsStyle {
  Endpoint endpoint = completions;
  const Tokenizer* tokenizer = nullptr;  // null: tokens are written by their ids
  bool tokens_as_ids = false;            // a token is written as token_id:42
  std::int64_t count = 0;                // how many of the most likely tokens; -1: all that there are
};

// The field `logprobs` of an answer, or of an event of a stream, for these tokens; null for none. A rank of 0 means
// that a token has no log probability, as the first of a prompt. `text_offset` is the offset of the first token in code
// points, and becomes that of the token after the last.
Json logprobs_json(const LogprobsStyle& style, std::span<const TokenLogprobs> tokens, std::int64_t& text_offset);

// The field `prompt_logprobs`: for each token of the prompt null or an object by token ids, which has the prompt's own
// token first and then `count` of the most likely ones (-1: all that there are).
Json prompt_logprobs_json(std::int64_t count, const Tokenizer* tokenizer, std::span<const TokenLogprobs> tokens);

// llama.cpp's `completion_probabilities` of these tokens, each with the `count` most likely ones.
Json llama_probabilities(std::int64_t count, const Tokenizer* tokenizer, std::span<const TokenLogprobs> tokens);

}  // namespace weft
