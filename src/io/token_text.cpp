#include "io/token_text.h"

#include <string_view>
#include <utility>

#include "base/text.h"
#include "io/byte_alphabet.h"
#include "io/fallback_tokens.h"

namespace weft {
namespace {

// The list of Hugging Face's WordPiece decoder.
void clean_up(std::string& text) {
  static constexpr std::pair<std::string_view, std::string_view> kReplacements[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kReplacements) text = replace_all(text, from, to);
}

std::string word_piece_text(const Vocabulary& vocabulary, const std::string& token, bool is_first) {
  std::string text;
  if (is_first) {
    text = token;
  } else if (token.starts_with(vocabulary.continuation)) {
    text = token.substr(vocabulary.continuation.size());
  } else {
    text = " " + token;
  }
  if (vocabulary.decoder.clean_up) clean_up(text);
  return text;
}

}  // namespace

std::optional<uint8_t> byte_of_token(const Vocabulary& vocabulary, int id) {
  const auto index = static_cast<size_t>(id);
  switch (vocabulary.decoder.byte_tokens) {
    case Decoder::ByteTokens::of_kind:
      if (vocabulary.kinds[index] != TokenKind::byte) return std::nullopt;
      break;
    case Decoder::ByteTokens::spelled:
      break;
    case Decoder::ByteTokens::none:
      return std::nullopt;
  }
  return byte_of_token(vocabulary.tokens[index]);
}

void append_token_text(const Vocabulary& vocabulary, int id, bool is_first, std::string& text) {
  const Decoder& decoder = vocabulary.decoder;
  const std::string& token = vocabulary.tokens[static_cast<size_t>(id)];
  const TokenKind kind = vocabulary.kinds[static_cast<size_t>(id)];
  if (const auto byte = byte_of_token(vocabulary, id)) {
    text += static_cast<char>(*byte);
    return;
  }
  if (decoder.form == Decoder::Form::word_piece) {
    text += word_piece_text(vocabulary, token, is_first);
    return;
  }
  // A text outside the alphabet is its own bytes, as in Hugging Face's ByteLevel decoder.
  const bool in_alphabet = vocabulary.byte_alphabet && (kind == TokenKind::normal || kind == TokenKind::unused);
  if (in_alphabet && append_from_byte_alphabet(token, text)) return;
  if (id == vocabulary.unknown && !decoder.unknown_text.empty()) {
    text += decoder.unknown_text;
    return;
  }
  if ((kind == TokenKind::control && !decoder.replaces_in_control) || decoder.replacements.empty()) {
    text += token;
    return;
  }
  std::string replaced = token;
  const bool drops_marks = is_first && decoder.form == Decoder::Form::metaspace;
  for (const Decoder::Replacement& one : decoder.replacements)
    replaced = replace_all(replaced, one.from, drops_marks ? std::string_view() : std::string_view(one.to));
  text += replaced;
}

}  // namespace weft
