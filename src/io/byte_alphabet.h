#pragma once

// The byte-level alphabet of GPT-2 writes each of the 256 bytes as one printable character, so that a vocabulary of
// arbitrary bytes is text. The bytes 21-7E, A1-AC and AE-FF are written as themselves (as Latin-1 characters). The 68
// others, in ascending order, are U+0100, U+0101, ... (space is U+0120, "Ġ").
// Source: bytes_to_unicode in GPT-2's published encoder.

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// The character of a byte, as one or two bytes of UTF-8.
std::string_view text_of_byte(uint8_t byte);

// Appends `bytes`, written in the alphabet.
void append_in_byte_alphabet(std::string_view bytes, std::string& text);

// Appends the bytes that `text` encodes. Returns false and appends nothing if a character is outside the alphabet.
bool append_from_byte_alphabet(std::string_view text, std::string& bytes);

}  // namespace weft
