#include "server/infill_prompt.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "server/api_error.h"
#include "server/json_body.h"
#include "server/prompt_ids.h"
#include "server/prompt_length.h"

namespace weft {
namespace {

// The prompt as it grows: its tokens, and its text for the answer.
class FillPrompt {
 public:
  explicit FillPrompt(const Tokenizer& tokenizer) : tokenizer_(tokenizer), ids(tokenizer.vocabulary().prefix) {}

  void add(int token) {
    ids.push_back(token);
    text += tokenizer_.token_bytes(token);
  }
  // Special tokens in the text of a client are text.
  void add(const std::string& more, const char* field) {
    if (more.empty()) return;
    try {
      const std::vector<int> encoded = tokenizer_.encode(more, {.parse_special = false, .add_special = false});
      ids.insert(ids.end(), encoded.begin(), encoded.end());
    } catch (const UserError& error) {
      throw wrong_value(error.what(), field);
    }
    text += more;
  }

 private:
  const Tokenizer& tokenizer_;

 public:
  std::vector<int> ids;
  std::string text;
};

// As llama.cpp writes them: as files of a repository if the model has tokens for those, else as snippets.
void add_files(FillPrompt& prompt, const FillTokens& tokens, const ApiRequest& request) {
  if (request.input_extra.empty()) return;
  constexpr const char* kField = "input_extra";
  if (tokens.repository) {
    prompt.add(*tokens.repository);
    prompt.add("myproject\n", kField);
  }
  for (const auto& [name, text] : request.input_extra) {
    if (tokens.file) {
      prompt.add(*tokens.file);
      prompt.add(name + "\n", kField);
    } else {
      prompt.add("\n\n--- snippet ---\n\n", kField);
    }
    prompt.add(text, kField);
  }
  if (!tokens.file) return;
  prompt.add(*tokens.file);
  prompt.add("filename\n", kField);
}

}  // namespace

std::string read_input_extra(Element value, ApiRequest& request) {
  request.input_extra.clear();
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return "a list of objects with text and filename";
  for (const Element item : list) {
    simdjson::dom::object file;
    std::string_view text, name = "tmp";
    const auto given = item.get(file) == simdjson::SUCCESS ? last_member(file, "text") : std::nullopt;
    const auto named = given ? last_member(file, "filename") : std::nullopt;
    if (!given || given->get(text) != simdjson::SUCCESS || (named && named->get(name) != simdjson::SUCCESS))
      throw WrongPart{fmt::format("item {} must be an object with the texts text and filename, but is {}",
                                  request.input_extra.size(), shown(item))};
    request.input_extra.emplace_back(name, text);
  }
  return "";
}

void add_infill_prompt(PreparedRequest& prepared, const ServedModel& model) {
  const ApiRequest& request = prepared.request;
  check_tokenizer(model);
  if (!model.fill_tokens)
    throw not_made_here(
        "the model has no tokens to fill in the middle of a text, such as <|fim_prefix|>, <|fim_suffix|> and "
        "<|fim_middle|>");
  const FillTokens& tokens = *model.fill_tokens;
  const std::string &before = *request.input_prefix, &after = *request.input_suffix;
  for (const std::string& text : {before, after}) check_text_length(text, request, model);
  FillPrompt prompt(*model.tokenizer);
  add_files(prompt, tokens, request);
  prompt.add(tokens.prefix);
  prompt.add(before, "input_prefix");
  prompt.add(request.content.value_or(""), "prompt");
  prompt.add(tokens.suffix);
  prompt.add(after, "input_suffix");
  prompt.add(tokens.middle);
  add_prompt(prepared, std::move(prompt.text), std::move(prompt.ids), model);
}

}  // namespace weft
