#include "io/fallback_tokens.h"

#include <fmt/core.h>

namespace weft {

std::string byte_token_text(uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

std::optional<uint8_t> byte_of_token(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const int high = digit(text[3]), low = digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

FallbackTokens::FallbackTokens(const Vocabulary& vocabulary, const TokenIndex& index)
    : unknown_(vocabulary.unknown), fuse_unknown_(vocabulary.fuse_unknown) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto id = index.find(byte_token_text(static_cast<uint8_t>(byte)), vocabulary.tokens);
    const bool is_byte = id && vocabulary.kinds[static_cast<size_t>(*id)] == TokenKind::byte;
    token_of_byte_[static_cast<size_t>(byte)] = is_byte ? *id : -1;
  }
}

}  // namespace weft
