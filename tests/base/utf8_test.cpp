#include "base/utf8.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"

namespace weft::utf8_test {

TEST(Utf8, ReplacesEachMaximalBrokenPartOnce) {
  EXPECT_EQ(replace_invalid_utf8("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(replace_invalid_utf8("\xFF"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), "\uFFFD");                        // one truncated character
  EXPECT_EQ(replace_invalid_utf8("\x80\x80"), "\uFFFD\uFFFD");                      // nothing they belong to
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");                      // overlong
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond U+10FFFF
  EXPECT_EQ(replace_invalid_utf8("ok \xE2(\xA1 end"), "ok \uFFFD(\uFFFD end");
  EXPECT_EQ(replace_invalid_utf8("a\xF0\x9F"
                                 "b"),
            "a\uFFFDb");
}

TEST(Utf8, EveryCharacterSurvivesEncodingAndStepping) {
  for (char32_t character = 0; character <= 0x10FFFF; ++character) {
    if (character >= 0xD800 && character <= 0xDFFF) continue;
    std::string text;
    append_utf8(character, text);
    const Utf8Step step = utf8_step(text, 0);
    ASSERT_EQ(step.status, Utf8Status::complete) << static_cast<uint32_t>(character);
    ASSERT_EQ(step.character, character);
    ASSERT_EQ(step.length, text.size());
    for (size_t length = 1; length < text.size(); ++length) {
      ASSERT_EQ(incomplete_utf8_suffix("x" + text.substr(0, length)), length);
    }
    ASSERT_EQ(incomplete_utf8_suffix(text), 0u);
  }
}

TEST(Utf8, AcceptsEveryScalarValueAndNothingElse) {
  // All encodings of up to four bytes, made from the definition: 7, 5+6, 4+6+6, 3+6+6+6 bits.
  for (std::uint32_t point = 0; point < 0x200000; ++point) {
    const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
    const bool scalar = point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
    const std::string four{static_cast<char>(0xF0 | (point >> 18)), tail(12), tail(6), tail(0)};
    ASSERT_EQ(first_invalid_utf8(four).has_value(), !(scalar && point >= 0x10000)) << point;
    if (point < 0x10000) {
      const std::string three{static_cast<char>(0xE0 | (point >> 12)), tail(6), tail(0)};
      ASSERT_EQ(first_invalid_utf8(three).has_value(), !(scalar && point >= 0x800)) << point;
    }
    if (point < 0x800) {
      const std::string two{static_cast<char>(0xC0 | (point >> 6)), tail(0)};
      ASSERT_EQ(first_invalid_utf8(two).has_value(), point < 0x80) << point;
    }
  }
}

TEST(Utf8, GivesTheOffsetOfTheBrokenSequence) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("aé中🎉"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("ab\x80"), 2u);
  EXPECT_EQ(first_invalid_utf8("a\xc3"), 1u);
  EXPECT_EQ(first_invalid_utf8("\xe2\x82(ok)"), 0u);
  EXPECT_EQ(first_invalid_utf8("é\xf0\x9f\x8e"), 2u);
  EXPECT_EQ(first_invalid_utf8("\xff"), 0u);
  EXPECT_EQ(first_invalid_utf8("\xf8\x88\x80\x80\x80"), 0u);
}

TEST(Utf8, BrokenBytesAtTheEndAreNotIncomplete) {
  EXPECT_EQ(incomplete_utf8_suffix("\xFF"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\xE0\x80"), 0u);  // overlong
  EXPECT_EQ(incomplete_utf8_suffix("\xC3\xA9\x80\x80"), 0u);
}

}  // namespace weft::utf8_test
