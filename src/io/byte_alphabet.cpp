#include "io/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace weft {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int kAlphabetEnd = 0x100 + 68;

struct ByteText {
  std::array<char, 2> utf8{};
  uint8_t length = 0;
};

struct Alphabet {
  std::array<ByteText, 256> text_of_byte{};
  std::array<int16_t, kAlphabetEnd> byte_of_character{};  // -1: none
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (int16_t& byte : alphabet.byte_of_character) byte = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const int character = stands_for_itself(byte) ? byte : next++;
    alphabet.byte_of_character[character] = static_cast<int16_t>(byte);
    ByteText& text = alphabet.text_of_byte[byte];
    if (character < 0x80) {
      text = {{static_cast<char>(character), 0}, 1};
    } else {
      text = {{static_cast<char>(0xC0 | (character >> 6)), static_cast<char>(0x80 | (character & 0x3F))}, 2};
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string_view text_of_byte(uint8_t byte) {
  const ByteText& text = kAlphabet.text_of_byte[byte];
  return {text.utf8.data(), text.length};
}

void append_in_byte_alphabet(std::string_view bytes, std::string& text) {
  for (const char byte : bytes) text += text_of_byte(static_cast<uint8_t>(byte));
}

bool append_from_byte_alphabet(std::string_view text, std::string& bytes) {
  const size_t size_before = bytes.size();
  size_t offset = 0;
  while (offset < text.size()) {
    const Utf8Step step = utf8_step(text, offset);
    const bool known = step.status == Utf8Status::complete && step.character < kAlphabetEnd &&
                       kAlphabet.byte_of_character[step.character] >= 0;
    if (!known) {
      bytes.resize(size_before);
      return false;
    }
    bytes.push_back(static_cast<char>(kAlphabet.byte_of_character[step.character]));
    offset += step.length;
  }
  return true;
}

}  // namespace weft
