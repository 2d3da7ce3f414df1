#include "io/utf8.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

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

TEST(Utf8, FindsTheFirstBrokenByte) {
  EXPECT_EQ(valid_utf8_prefix(""), 0u);
  EXPECT_EQ(valid_utf8_prefix("abc"), 3u);
  EXPECT_EQ(valid_utf8_prefix("abc\xFF\xFE"), 3u);
  EXPECT_EQ(valid_utf8_prefix("\xE4\xBD\xA0\xE5\xA5"), 3u);
}

TEST(Utf8, BrokenBytesAtTheEndAreNotIncomplete) {
  EXPECT_EQ(incomplete_utf8_suffix("\xFF"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\xE0\x80"), 0u);  // overlong
  EXPECT_EQ(incomplete_utf8_suffix("\xC3\xA9\x80\x80"), 0u);
}

TEST(Utf8, QuotesForMessagesAreShortAndPrintable) {
  EXPECT_EQ(quote_for_message("a\n\xFF"), "'a\\x0a\uFFFD'");
  EXPECT_EQ(quote_for_message("aaaa", 3), "'aaa...'");
  EXPECT_EQ(quote_for_message("aa\xC3\xA9", 3), "'aa...'");
}

}  // namespace
}  // namespace weft
