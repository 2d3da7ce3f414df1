#include "server/logprobs_json.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "base/utf8.h"

namespace weft {
namespace {

// JSON has no infinity; this is vLLM's number for a token that is impossible.
constexpr double kLeastLogprob = -9999.0;

double number_of(float logprob) { return std::max<double>(logprob, kLeastLogprob); }

// Ids beyond the vocabulary, which a padded embedding has, have no bytes.
std::string_view bytes_of(const LogprobsStyle& style, int id) {
  const bool is_known = style.tokenizer != nullptr && id < style.tokenizer->token_count();
  return is_known ? style.tokenizer->token_bytes(id) : std::string_view();
}

std::string text_of(const LogprobsStyle& style, int id) {
  if (style.tokens_as_ids || style.tokenizer == nullptr) return fmt::format("token_id:{}", id);
  return replace_invalid_utf8(bytes_of(style, id));
}

std::int64_t code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return !is_utf8_continuation(byte); });
}

// The most likely tokens that are written.
std::span<const TokenLogprob> top_of(const LogprobsStyle& style, const TokenLogprobs& token) {
  const std::span<const TokenLogprob> top = token.top;
  return style.count < 0 ? top : top.first(std::min(static_cast<std::size_t>(style.count), top.size()));
}

// The most likely tokens first, then the chosen one. Of two tokens with the same text the more likely one is there. The
// members are appended without Json's own look-up, which would compare each with all others.
Json text_dictionary(const LogprobsStyle& style, const TokenLogprobs& token) {
  Json::object_t members;
  std::unordered_set<std::string> texts;
  const auto put = [&](const TokenLogprob& one) {
    const std::string text = text_of(style, one.id);
    if (texts.insert(text).second) members.emplace_back(text, number_of(one.logprob));
  };
  for (const TokenLogprob& one : top_of(style, token)) put(one);
  put(token.chosen);
  return members;
}

Json completion_logprobs(const LogprobsStyle& style, std::span<const TokenLogprobs> tokens, std::int64_t& text_offset) {
  Json json{{"text_offset", Json::array()},
            {"token_logprobs", Json::array()},
            {"tokens", Json::array()},
            {"top_logprobs", Json::array()}};
  for (const TokenLogprobs& token : tokens) {
    const std::string text = text_of(style, token.chosen.id);
    json["text_offset"].push_back(text_offset);
    text_offset += code_points(text);
    json["token_logprobs"].push_back(token.rank == 0 ? Json(nullptr) : Json(number_of(token.chosen.logprob)));
    json["tokens"].push_back(text);
    json["top_logprobs"].push_back(token.rank == 0 ? Json(nullptr) : text_dictionary(style, token));
  }
  return json;
}

Json chat_entry(const LogprobsStyle& style, const TokenLogprob& token) {
  Json bytes = Json::array();
  for (const char byte : bytes_of(style, token.id)) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", text_of(style, token.id)}, {"logprob", number_of(token.logprob)}, {"bytes", std::move(bytes)}};
}

}  // namespace

Json logprobs_json(const LogprobsStyle& style, std::span<const TokenLogprobs> tokens, std::int64_t& text_offset) {
  if (tokens.empty()) return nullptr;
  if (style.endpoint != chat) return completion_logprobs(style, tokens, text_offset);
  Json content = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json entry = chat_entry(style, token.chosen);
    entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& one : top_of(style, token)) entry["top_logprobs"].push_back(chat_entry(style, one));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

Json prompt_logprobs_json(std::int64_t count, const Tokenizer* tokenizer, std::span<const TokenLogprobs> tokens) {
  const LogprobsStyle style{.tokenizer = tokenizer, .count = count};
  Json list = Json::array();
  for (const TokenLogprobs& token : tokens) {
    if (token.rank == 0) {
      list.push_back(nullptr);
      continue;
    }
    Json::object_t members;
    const auto put = [&](const TokenLogprob& one, std::int64_t rank) {
      members.emplace_back(
          std::to_string(one.id),
          Json{{"logprob", number_of(one.logprob)}, {"rank", rank}, {"decoded_token", text_of(style, one.id)}});
    };
    put(token.chosen, token.rank);
    std::int64_t rank = 0;
    for (const TokenLogprob& one : top_of(style, token))
      if (++rank != token.rank) put(one, rank);
    list.push_back(std::move(members));
  }
  return list;
}

Json llama_probabilities(std::int64_t count, const Tokenizer* tokenizer, std::span<const TokenLogprobs> tokens) {
  const LogprobsStyle style{.tokenizer = tokenizer, .count = count};
  const auto entry = [&](const TokenLogprob& one) {
    Json json{{"id", one.id}};
    json.update(chat_entry(style, one));
    return json;
  };
  Json list = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json json = entry(token.chosen), top = Json::array();
    for (const TokenLogprob& one : top_of(style, token)) top.push_back(entry(one));
    json["top_logprobs"] = std::move(top);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace weft
