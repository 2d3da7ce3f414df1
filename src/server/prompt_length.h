#pragma once

// Whether a prompt fits into the context.

#include <cstddef>
#include <string_view>

#include "io/tokenizer.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace weft {

// ApiError 400 if a prompt of this number of tokens leaves none for an answer that has tokens.
void check_length(std::size_t tokens, const ApiRequest& request, const ServedModel& model);

// The same for a text that cannot fit, whatever its tokens are: finding those of a very long text takes seconds.
void check_text_length(std::string_view text, const ApiRequest& request, const ServedModel& model);

// How many bytes of a text become one token at most; 0 if the tokenizer may drop text or has no such limit.
std::size_t most_bytes_of_token(const Tokenizer& tokenizer);

}  // namespace weft
