#include "io/byte_alphabet.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weft::byte_alphabet_test {

TEST(ByteAlphabet, WritesEveryByteAsOneCharacterOfItsOwn) {
  std::set<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(text_of_byte(static_cast<uint8_t>(byte)));
    texts.insert(text);
    std::string bytes;
    ASSERT_TRUE(append_from_byte_alphabet(text, bytes));
    EXPECT_EQ(bytes, std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(texts.size(), 256u);
}

TEST(ByteAlphabet, IsTheOneOfGpt2) {
  EXPECT_EQ(text_of_byte('A'), "A");
  EXPECT_EQ(text_of_byte(' '), "\u0120");
  EXPECT_EQ(text_of_byte('\n'), "\u010A");
  EXPECT_EQ(text_of_byte(0x00), "\u0100");
  EXPECT_EQ(text_of_byte(0x7F), "\u0121");
  EXPECT_EQ(text_of_byte(0xA0), "\u0142");
  EXPECT_EQ(text_of_byte(0xAD), "\u0143");
  EXPECT_EQ(text_of_byte(0xFF), "\u00FF");
}

TEST(ByteAlphabet, RefusesOtherCharactersAndLeavesNothingBehind) {
  std::string bytes = "kept";
  EXPECT_FALSE(append_from_byte_alphabet("ab c", bytes));
  EXPECT_FALSE(append_from_byte_alphabet("ab\u0144", bytes));
  EXPECT_FALSE(append_from_byte_alphabet("ab\xFF", bytes));
  EXPECT_EQ(bytes, "kept");
}

}  // namespace weft::byte_alphabet_test
