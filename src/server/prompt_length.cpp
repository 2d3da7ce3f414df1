#include "server/prompt_length.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include <fmt/format.h>

#include "io/normalizer.h"
#include "io/pre_tokenizer.h"
#include "server/api_error.h"

namespace weft {
namespace {

// A normal form of Unicode may shorten a text, but by less than this.
constexpr std::size_t kMostShortened = 8;

bool drops_text(const PreTokenizerStep& step) {
  const auto* split = std::get_if<PatternSplit>(&step);
  return split != nullptr && split->behavior == SplitBehavior::removed;
}

[[noreturn]] void refuse_length(std::size_t tokens, const char* least, const ApiRequest& request,
                                const ServedModel& model) {
  // Anthropic's clients look for these words, and then shorten the conversation.
  if (is_anthropic(request.endpoint))
    throw wrong_value(
        fmt::format("[messages] prompt is too long: {} tokens > {} maximum", tokens, model.max_model_len - 1),
        "messages");
  const char* together = is_pooled(request.endpoint) ? "" : ", prompt and answer together";
  throw wrong_value(fmt::format("the maximum context length is {} tokens{}, but the prompt has {}{} tokens",
                                model.max_model_len, together, least, tokens),
                    "input_tokens");
}

// An embedding is an answer without tokens.
bool fits(std::size_t tokens, const ApiRequest& request, const ServedModel& model) {
  const std::int64_t answer = is_pooled(request.endpoint) ? 0 : 1;
  return static_cast<std::int64_t>(tokens) + answer <= model.max_model_len;
}

}  // namespace

void check_length(std::size_t tokens, const ApiRequest& request, const ServedModel& model) {
  if (!fits(tokens, request, model)) refuse_length(tokens, "", request, model);
}

void check_text_length(std::string_view text, const ApiRequest& request, const ServedModel& model) {
  if (model.most_bytes_of_token == 0 || request.truncate_prompt_tokens) return;
  const std::size_t least = text.size() / model.most_bytes_of_token;
  if (!fits(least, request, model)) refuse_length(least, "at least ", request, model);
}

std::size_t most_bytes_of_token(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool keeps_text =
      vocabulary.byte_alphabet && std::none_of(vocabulary.steps.begin(), vocabulary.steps.end(), drops_text) &&
      std::all_of(vocabulary.normalizer.begin(), vocabulary.normalizer.end(),
                  [](const NormalizerStep& step) { return std::holds_alternative<UnicodeForm>(step); }) &&
      std::none_of(vocabulary.added_tokens.begin(), vocabulary.added_tokens.end(),
                   [](const AddedToken& token) { return token.strip_left || token.strip_right; });
  if (!keeps_text) return 0;
  // The text of a token has at least as many bytes as the token means, which would take longer to find for all tokens.
  std::size_t most = 0;
  for (const auto& token : vocabulary.tokens) most = std::max(most, token.size());
  return vocabulary.normalizer.empty() ? most : most * kMostShortened;
}

}  // namespace weft
