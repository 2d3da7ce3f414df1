#include "server/prompt_ids.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "server/prompt_length.h"

namespace weft {

void check_tokenizer(const ServedModel& model) {
  if (model.tokenizer == nullptr)
    throw wrong_value("[model] has no tokenizer: a prompt must be a list of token ids", "prompt");
}

std::vector<int> encoded(const std::string& text, bool add_special, const ServedModel& model, const char* field) {
  check_tokenizer(model);
  try {
    return model.tokenizer->encode(text, {.add_special = add_special});
  } catch (const UserError& error) {
    throw wrong_value(error.what(), field);
  }
}

namespace {

// As vLLM does with models of each kind: what is embedded loses its end, and keeps the tokens around it.
void truncate(std::vector<int>& ids, AddedAround around, const ApiRequest& request, const ServedModel& model) {
  if (!request.truncate_prompt_tokens) return;
  const bool is_embedded = is_pooled(request.endpoint);
  const std::int64_t given = *request.truncate_prompt_tokens;
  const auto most = static_cast<std::size_t>(given >= 0    ? given
                                             : is_embedded ? model.max_model_len
                                                           : model.max_model_len - 1);
  if (ids.size() <= most) return;
  if (!is_embedded || around.before + around.after > most) around = {};
  const auto dropped = static_cast<std::ptrdiff_t>(ids.size() - most);
  if (request.truncation_side.value_or(is_embedded ? "right" : "left") == "left") {
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(around.before);
    ids.erase(first, first + dropped);
  } else {
    const auto last = ids.end() - static_cast<std::ptrdiff_t>(around.after);
    ids.erase(last - dropped, last);
  }
}

}  // namespace

void add_prompt(PreparedRequest& prepared, std::string text, std::vector<int> ids, const ServedModel& model,
                AddedAround around) {
  const std::size_t whole = ids.size();
  truncate(ids, around, prepared.request, model);
  if (whole > 0 && ids.empty())
    throw wrong_value("[truncate_prompt_tokens] must leave a token of the prompt, but is 0", "truncate_prompt_tokens");
  const char* field = prompt_field(prepared.request);
  if (prepared.request.endpoint == completions && !text.empty() && ids.size() != whole)
    text = model.tokenizer->decode(ids, {.skip_special = prepared.request.skip_special_tokens.value_or(true)});
  if (ids.empty()) throw wrong_value(fmt::format("[{}] must have at least one token", field), field);
  check_length(ids.size(), prepared.request, model);
  prepared.prompts.push_back({std::move(text), std::make_shared<const std::vector<int>>(std::move(ids))});
}

void add_completion_prompts(PreparedRequest& prepared, const ServedModel& model) {
  const ApiRequest& request = prepared.request;
  const bool echo = request.echo.value_or(false);
  const char* field = prompt_field(request);
  if (request.prompts.empty()) throw wrong_value(fmt::format("[{}] must not be empty", field), field);
  for (const Prompt& prompt : request.prompts) {
    if (const auto* ids = std::get_if<PromptIds>(&prompt)) {
      for (const int id : *ids) check_token(id, model.vocabulary_size, field);
      std::string text;
      if (echo) {
        check_tokenizer(model);
        const int known = model.tokenizer->token_count();  // a padded embedding has more rows
        std::vector<int> shown;
        std::copy_if(ids->begin(), ids->end(), std::back_inserter(shown), [&](int id) { return id < known; });
        text = model.tokenizer->decode(shown, {.skip_special = request.skip_special_tokens.value_or(true)});
      }
      add_prompt(prepared, std::move(text), *ids, model);
    } else {
      const auto& text = std::get<PromptText>(prompt);
      if (text.empty()) throw wrong_value(fmt::format("[{}] must not be empty", field), field);
      check_text_length(text, request, model);
      const bool adds_special = request.add_special_tokens.value_or(true);
      std::vector<int> encoded_ids = encoded(text, adds_special, model, field);
      AddedAround around;
      if (adds_special) {
        const Vocabulary& vocabulary = model.tokenizer->vocabulary();
        around = {vocabulary.prefix.size(), vocabulary.suffix.size()};
      }
      add_prompt(prepared, echo ? text : "", std::move(encoded_ids), model, around);
    }
  }
}

}  // namespace weft
