#pragma once

// The prompts of a request as token ids.

#include <cstddef>
#include <string>
#include <vector>

#include "server/prepared_request.h"

namespace weft {

// ApiError 400 if the model has no tokenizer.
void check_tokenizer(const ServedModel& model);

// ApiError 400, about `field`, for a text that cannot be encoded.
std::vector<int> encoded(const std::string& text, bool add_special, const ServedModel& model, const char* field);

// The tokens that a tokenizer adds around a text.
struct AddedAround {
  std::size_t before = 0, after = 0;
};

// Adds a prompt, which truncate_prompt_tokens may shorten. ApiError 400 if it has no token or does not fit.
void add_prompt(PreparedRequest& prepared, std::string text, std::vector<int> ids, const ServedModel& model,
                AddedAround around = {});

// Adds the prompts of the request, which are texts or token ids.
void add_completion_prompts(PreparedRequest& prepared, const ServedModel& model);

}  // namespace weft
