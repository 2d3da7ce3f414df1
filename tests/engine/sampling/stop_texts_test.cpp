#include "engine/sampling/stop_texts.h"

#include <gtest/gtest.h>

namespace weft::stop_texts_test {

TEST(StopTexts, HoldBackWhatMayBeginOneAndDropWhatFollows) {
  StopTexts stops({"bcd"});
  EXPECT_EQ(stops.push("ab"), "a");
  EXPECT_EQ(stops.push("x"), "bx");
  EXPECT_EQ(stops.push("bc"), "");
  EXPECT_EQ(stops.push("de"), "");
  EXPECT_TRUE(stops.has_stopped());
  EXPECT_EQ(stops.finish(), "");
  StopTexts open({"bcd"});
  EXPECT_EQ(open.push("abc"), "a");
  EXPECT_EQ(open.finish(), "bc");
  EXPECT_FALSE(open.has_stopped());
}

TEST(StopTexts, MatchSpecialTokensThatAreNotShown) {
  StopTexts whole({"<|mid|>"});
  EXPECT_EQ(whole.push("a"), "a");
  EXPECT_EQ(whole.push_special("<|mid|>"), "");
  EXPECT_TRUE(whole.has_stopped());

  StopTexts around({"a<|mid|>b"});
  EXPECT_EQ(around.push("xa"), "x");
  EXPECT_EQ(around.push_special("<|mid|>"), "");
  EXPECT_EQ(around.push("c"), "ac") << "the special token is never shown";
  EXPECT_FALSE(around.has_stopped());
}

TEST(StopTexts, AreNotPartsOfASpecialTokensText) {
  for (const char* stop : {"<", "mid", "|>"}) {
    StopTexts stops({stop});
    EXPECT_EQ(stops.push_special("<|mid|>"), "");
    EXPECT_FALSE(stops.has_stopped()) << stop;
    EXPECT_EQ(stops.push("ok") + stops.finish(), "ok");
  }
}

TEST(StopTexts, AreFoundInTheShownTextAcrossSpecialTokens) {
  StopTexts stops({"ab"});
  EXPECT_EQ(stops.push("xa"), "x");
  EXPECT_EQ(stops.push_special("<|mid|>"), "");
  EXPECT_EQ(stops.push("bc"), "");
  EXPECT_TRUE(stops.has_stopped());
}

TEST(StopTexts, TheOneThatEndsFirstCountsAndOfEqualsTheFirstGiven) {
  StopTexts longer({"abcd", "c"});
  EXPECT_EQ(longer.push("xabcd"), "xab") << "which begins later";
  EXPECT_EQ(longer.stopped_by(), 1);
  StopTexts equals({"bc", "abc"});
  EXPECT_EQ(equals.push("xabc"), "xa");
  EXPECT_EQ(equals.stopped_by(), 0);
  StopTexts special({"b<|mid|>", "mid|>c", "<|mid|>"});
  EXPECT_EQ(special.push("ab"), "a");
  EXPECT_EQ(special.push_special("<|mid|>"), "");
  EXPECT_EQ(special.stopped_by(), 0);
}

TEST(StopTexts, ArePartOfTheAnswerIfAsked) {
  StopTexts stops({"bc", "<|mid|>"}, true);
  EXPECT_EQ(stops.push("ab"), "a");
  EXPECT_EQ(stops.push("cd"), "bc");
  EXPECT_EQ(stops.finish(), "");
  StopTexts special({"b<|mid|>"}, true);
  EXPECT_EQ(special.push("ab"), "a");
  EXPECT_EQ(special.push_special("<|mid|>"), "b<|mid|>");
  StopTexts across({"bc"}, true);
  std::string text = across.push("ab");
  text += across.push_special("<|mid|>");
  text += across.push("cd");
  EXPECT_EQ(text, "abc");
}

TEST(StopTexts, AreNotLookedForInSomeTextButMayBeginThere) {
  StopTexts stops({"ab", "xxabz"});
  EXPECT_EQ(stops.push("ab1", false), "ab1");
  EXPECT_EQ(stops.push("xxab", false), "");
  EXPECT_FALSE(stops.has_stopped());
  EXPECT_EQ(stops.push("-"), "xxab-");
  EXPECT_EQ(stops.push("1a", false), "1");
  EXPECT_EQ(stops.push("b"), "");
  EXPECT_EQ(stops.stopped_by(), 0);
}

TEST(StopTexts, TheFirstOfSeveralCounts) {
  StopTexts stops({"c", "b"});
  EXPECT_EQ(stops.stopped_by(), -1);
  EXPECT_EQ(stops.push("abc"), "a");
  EXPECT_EQ(stops.stopped_by(), 1);
  StopTexts none;
  EXPECT_EQ(none.push("abc") + none.push_special("<s>") + none.finish(), "abc");
}

}  // namespace weft::stop_texts_test
