#include "server/text_endpoints.h"

#include "base/error.h"
#include "base/utf8.h"
#include "engine/conversation.h"
#include "server/api_error.h"
#include "server/prepared_request.h"

namespace weft {
namespace {

const Tokenizer& tokenizer_of(const ServedModel& model) {
  if (model.tokenizer == nullptr) throw wrong_value("[model] has no tokenizer", "model");
  return *model.tokenizer;
}

// A list of bytes if the token ends inside a character, as llama.cpp writes it.
Json piece_of(const std::string_view bytes) {
  if (!first_invalid_utf8(bytes)) return std::string(bytes);
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

// The text of the request, and whether special tokens are added to it.
std::pair<std::string, bool> text_of(const ApiRequest& request, const ServedModel& model) {
  if (request.messages.is_array()) return {render_messages(request, model), request.add_special_tokens.value_or(false)};
  if (request.content) return {*request.content, request.add_special.value_or(false)};
  const bool is_text = request.prompts.size() == 1 && std::holds_alternative<PromptText>(request.prompts[0]);
  if (!is_text) throw wrong_type("[prompt] must be a text; or there must be messages or content", "prompt");
  return {std::get<PromptText>(request.prompts[0]), request.add_special_tokens.value_or(true)};
}

}  // namespace

Json tokenized(const ApiRequest& request, const ServedModel& model) {
  check_model(request, model);
  check_fields(request);
  const Tokenizer& tokenizer = tokenizer_of(model);
  const auto [text, adds_special] = text_of(request, model);
  std::vector<int> ids;
  try {
    ids = tokenizer.encode(text, {.parse_special = request.parse_special.value_or(true), .add_special = adds_special});
  } catch (const UserError& error) {
    throw wrong_value(error.what(), "prompt");
  }
  Json tokens = Json::array(), texts = nullptr;
  const bool has_pieces = request.with_pieces.value_or(false);
  if (request.return_token_strs.value_or(false)) texts = Json::array();
  for (const int id : ids) {
    const std::string_view bytes = tokenizer.token_bytes(id);
    tokens.push_back(has_pieces ? Json{{"id", id}, {"piece", piece_of(bytes)}} : Json(id));
    if (texts.is_array()) texts.push_back(tokenizer.vocabulary().tokens[static_cast<std::size_t>(id)]);
  }
  return {{"count", ids.size()},
          {"max_model_len", model.max_model_len},
          {"tokens", std::move(tokens)},
          {"token_strs", std::move(texts)}};
}

Json detokenized(const ApiRequest& request, const ServedModel& model) {
  check_model(request, model);
  check_fields(request);
  const Tokenizer& tokenizer = tokenizer_of(model);
  for (const int id : request.tokens) check_token(id, tokenizer.token_count(), "tokens");
  const std::string text = tokenizer.decode(request.tokens);
  return {{"prompt", text}, {"content", text}};
}

// Also of a conversation that is too long to be answered: clients ask how long it is.
Json counted_tokens(ApiRequest request, const ServedModel& model) {
  check_model(request, model);
  check_fields(request);
  return {{"input_tokens", render_conversation(request, model).ids.size()}};
}

Json tokenizer_info(const ServedModel& model) {
  Json info{{"tokenizer_class", "WeftTokenizer"},
            {"model_max_length", model.max_model_len},
            {"vocab_size", model.vocabulary_size},
            {"chat_template", model.chat_template ? Json(model.template_source) : Json(nullptr)}};
  if (model.tokenizer == nullptr) return info;
  const Vocabulary& vocabulary = model.tokenizer->vocabulary();
  const Json variables = chat_variables(vocabulary, Json::array(), false, Json::object());
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token"})
    info[name] = variables.contains(name) ? variables[name] : Json(nullptr);
  return info;
}

}  // namespace weft
