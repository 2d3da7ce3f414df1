#include "io/added_tokens.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "io/config_fields.h"

namespace weft {
namespace {

std::vector<bool> tokens_in_model(const Vocabulary& vocabulary) {
  std::vector<bool> in_model;
  for (const TokenKind kind : vocabulary.kinds)
    in_model.push_back(kind == TokenKind::normal || kind == TokenKind::user_defined);
  return in_model;
}

void add_token(AddedToken token, std::int64_t id, const std::string& text, bool is_special, const std::string& where,
               Vocabulary& vocabulary) {
  const auto count = static_cast<std::int64_t>(vocabulary.tokens.size());
  USER_CHECK(id >= 0 && id <= count + kMaxIdGap, "[{}] the id of {} must be 0 to {}, but is {}", where, quote(text),
             count + kMaxIdGap, id);
  const auto index = static_cast<size_t>(id);
  // The model has what its own file has, whatever becomes of the kinds.
  if (vocabulary.in_model.empty()) vocabulary.in_model = tokens_in_model(vocabulary);
  if (id >= count) {
    vocabulary.in_model.resize(index + 1);
    vocabulary.tokens.resize(index + 1);
    vocabulary.kinds.resize(index + 1, TokenKind::unused);
    if (!vocabulary.scores.empty()) vocabulary.scores.resize(index + 1);
  }
  std::string& existing = vocabulary.tokens[index];
  TokenKind& kind = vocabulary.kinds[index];
  // A user-defined piece of SentencePiece is listed with marks, and its text here has spaces.
  USER_CHECK(existing.empty() || existing == text || kind == TokenKind::user_defined,
             "[{}] token {} must be {}, as in the vocabulary, but is {}", where, id, quote(existing), quote(text));
  if (existing.empty()) existing = text;
  if (kind != TokenKind::unknown) kind = is_special ? TokenKind::control : TokenKind::user_defined;
  token.id = static_cast<int>(id);
  auto& added = vocabulary.added_tokens;
  const auto found =
      std::find_if(added.begin(), added.end(), [&](const AddedToken& one) { return one.id == token.id; });
  found == added.end() ? added.push_back(token) : void(*found = token);
}

AddedToken flags_of(const JsonFields& token) {
  return {.single_word = token.find_boolean("single_word").value_or(false),
          .strip_left = token.find_boolean("lstrip").value_or(false),
          .strip_right = token.find_boolean("rstrip").value_or(false)};
}

// An entry of added_tokens_decoder.
struct ConfigToken {
  AddedToken token;
  std::int64_t id;
  std::string text;
  bool is_special;
};

std::vector<ConfigToken> tokens_of_config(const Json& tokenizer_config, const std::string& where) {
  std::vector<ConfigToken> tokens;
  const auto list = tokenizer_config.find("added_tokens_decoder");
  if (list == tokenizer_config.end() || !list->is_object()) return tokens;
  for (const auto& [key, value] : list->items()) {
    std::int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    USER_CHECK(error == std::errc() && end == key.data() + key.size() && value.is_object(),
               "[{}] added_tokens_decoder must map ids to objects, but has {}", where, quote(key));
    const JsonFields fields(value, where, "added_tokens_decoder." + key + ".");
    const auto text = fields.find_text("content");
    USER_CHECK(text && !text->empty(), "[{}] added_tokens_decoder.{} must have a content, but has none", where, key);
    tokens.push_back({.token = flags_of(fields),
                      .id = id,
                      .text = *text,
                      .is_special = fields.find_boolean("special").value_or(false)});
  }
  return tokens;
}

}  // namespace

std::optional<int> find_token(std::string_view text, const Vocabulary& vocabulary) {
  const auto at = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text);
  if (at == vocabulary.tokens.end()) return std::nullopt;
  return static_cast<int>(at - vocabulary.tokens.begin());
}

std::optional<std::string> named_text(const JsonFields& fields, std::string_view key) {
  const auto* value = fields.value(key);
  if (value == nullptr) return std::nullopt;
  return value->is_object() ? JsonFields(*value, fields.where(), fields.name(key) + ".").find_text("content")
                            : fields.find_text(key);
}

void add_tokens_of_config(const Json& tokenizer_config, const std::string& where, Vocabulary& vocabulary) {
  for (const ConfigToken& one : tokens_of_config(tokenizer_config, where))
    add_token(one.token, one.id, one.text, one.is_special, where, vocabulary);
}

std::vector<SpecialToken> special_tokens_of(const Json& tokenizer_config, const std::string& where) {
  const JsonFields fields(tokenizer_config, where);
  std::vector<SpecialToken> tokens;
  const auto add = [&](const Json& value, const std::string& name) {
    if (value.is_string()) tokens.push_back({value.get<std::string>(), {}});
    if (!value.is_object()) return;
    const JsonFields token(value, where, name + ".");
    if (const auto text = token.find_text("content")) tokens.push_back({*text, flags_of(token)});
  };
  for (const char* key : kNamedTokens)
    if (const Json* value = fields.value(key)) add(*value, fields.name(key));
  for (const char* key : kTokenLists)
    if (const Json* list = fields.value(key); list != nullptr && list->is_array())
      for (const Json& value : *list) add(value, fields.name(key));
  std::erase_if(tokens, [](const SpecialToken& one) { return one.text.empty(); });
  return tokens;
}

void mark_special_tokens(const Json& tokenizer_config, const std::string& where, Vocabulary& vocabulary) {
  for (const SpecialToken& one : special_tokens_of(tokenizer_config, where)) {
    const auto& added = vocabulary.added_tokens;
    const bool is_added = std::any_of(added.begin(), added.end(), [&](const AddedToken& other) {
      return vocabulary.tokens[static_cast<std::size_t>(other.id)] == one.text;
    });
    if (is_added) continue;
    if (const auto id = find_token(one.text, vocabulary)) add_token(one.flags, *id, one.text, true, where, vocabulary);
  }
}

void mark_tokens_of_config(const Json& tokenizer_config, const std::string& where, Vocabulary& vocabulary) {
  for (const ConfigToken& one : tokens_of_config(tokenizer_config, where)) {
    const auto at = static_cast<std::size_t>(one.id);
    const bool is_there = one.id >= 0 && at < vocabulary.tokens.size() && vocabulary.tokens[at] == one.text;
    const std::optional<int> id = is_there ? static_cast<int>(one.id) : find_token(one.text, vocabulary);
    if (id) add_token(one.token, *id, one.text, one.is_special, where, vocabulary);
  }
  mark_special_tokens(tokenizer_config, where, vocabulary);
}

void add_tokens_by_text(const Json& tokens, const std::string& where, bool is_special, Vocabulary& vocabulary) {
  USER_CHECK(tokens.is_object(), "[{}] must map texts of tokens to ids, but is {}", where, shown_json(tokens));
  for (const auto& [text, id] : tokens.items()) {
    USER_CHECK(id.is_number_integer() && !text.empty(), "[{}] {} must have an id, but has {}", where, quote(text),
               shown_json(id));
    add_token({}, id.get<std::int64_t>(), text, is_special, where, vocabulary);
  }
}

}  // namespace weft
