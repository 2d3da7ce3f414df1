#include "base/text.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/utf8.h"
#include "tests/thrown_message.h"

namespace weft::text_test {

TEST(EditDistance, CountsInsertionsDeletionsSubstitutionsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);  // no part is edited twice
  EXPECT_EQ(edit_distance("rms_norm", "rms_nrom"), 1u);
}

TEST(EditDistance, IsSymmetricAndZeroOnlyForEqualTexts) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string a(random() % 7, ' ');
    std::string b(random() % 7, ' ');
    for (char& c : a) c = static_cast<char>('a' + random() % 3);
    for (char& c : b) c = static_cast<char>('a' + random() % 3);
    EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << " " << b;
    EXPECT_EQ(edit_distance(a, b) == 0, a == b) << a << " " << b;
  }
}

TEST(Nearest, FindsWhatWasProbablyMeant) {
  const std::vector<std::string> names{"max-model-len", "max-num-seqs", "max-num-batched-tokens", "dtype", "device"};
  EXPECT_EQ(nearest("max-modle-len", names), "max-model-len");
  EXPECT_EQ(nearest("max_model_len", names), "max-model-len");
  EXPECT_EQ(nearest("MAX-NUM-SEQ", names), "max-num-seqs");
  EXPECT_EQ(nearest("dtyp", names), "dtype");
  EXPECT_EQ(nearest("max-num-b", names), "max-num-seqs");
  EXPECT_EQ(nearest("max-num-batched", names), "max-num-batched-tokens");
  EXPECT_EQ(nearest("temperature", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(nearest("x", names), std::nullopt);
  EXPECT_EQ(nearest("dtype", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(1 << 20, 'd'), names), std::nullopt);
}

TEST(Nearest, TakesALongerNameWhoseBeginningIsNear) {
  const std::vector<std::string> names{"fuse_norm_quant", "split"};
  EXPECT_EQ(nearest("fuse_nrm", names), "fuse_norm_quant");
  EXPECT_EQ(nearest("fuse_nnnn", names), std::nullopt);
  EXPECT_EQ(nearest("spl", names), "split");
}

TEST(Nearest, TakesTheFirstOfEquals) {
  const std::vector<std::string> names{"cat1", "cat2"};
  EXPECT_EQ(nearest("cat3", names), "cat1");
}

TEST(Suggestion, IsTheEndOfAMessage) {
  const std::vector<std::string> names{"dtype"};
  EXPECT_EQ(suggestion("dtpye", names), ", did you mean \"dtype\"?");
  EXPECT_EQ(suggestion("seed", names), "");
  const std::vector<std::string> few{"dtype", "mode"};
  EXPECT_EQ(suggestion_or_all("dtpye", few), suggestion("dtpye", few));
  EXPECT_EQ(suggestion_or_all("seed", few), "; there are dtype, mode");
  EXPECT_EQ(suggestion_or_all("seed", {}), "");
}

TEST(Quoted, EscapesWhatWouldDisturbATerminal) {
  EXPECT_EQ(quote("plain é 中 🎉"), "\"plain é 中 🎉\"");
  EXPECT_EQ(quote(""), "\"\" (empty)");
  EXPECT_EQ(quote("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(quote("\n\r\t"), "\"\\n\\r\\t\"");
  EXPECT_EQ(quote(std::string("\x1b[31m\0\x7f", 7)), "\"\\u{1b}[31m\\u{0}\\u{7f}\"");
  EXPECT_EQ(quote("\xc2\x9b"), "\"\\u{9b}\"");        // a C1 control: starts a command on some terminals
  EXPECT_EQ(quote("\xe2\x80\xae"), "\"\\u{202e}\"");  // right-to-left override
  EXPECT_EQ(quote("\xff\xc3(\xe2\x82"), "\"\\xff\\xc3(\\xe2\\x82\"");
}

TEST(Quoted, CutsLongTextsBetweenCharacters) {
  EXPECT_EQ(quote("abcdef", 3), "\"abc\"... (6 bytes)");
  EXPECT_EQ(quote("ab\xc3\xa9", 3), "\"ab\"... (4 bytes)");
  EXPECT_EQ(quote("abc", 3), "\"abc\"");
  EXPECT_LT(quote(std::string(1 << 20, '\1')).size(), 1000u);
}

TEST(HumanInteger, ReadsSuffixes) {
  EXPECT_EQ(human_integer("0", "x"), 0);
  EXPECT_EQ(human_integer("8192", "x"), 8192);
  EXPECT_EQ(human_integer("-12", "x"), -12);
  EXPECT_EQ(human_integer("+12", "x"), 12);
  EXPECT_EQ(human_integer("1k", "x"), 1000);
  EXPECT_EQ(human_integer("1K", "x"), 1024);
  EXPECT_EQ(human_integer("2m", "x"), 2000000);
  EXPECT_EQ(human_integer("2M", "x"), 2 << 20);
  EXPECT_EQ(human_integer("3g", "x"), 3000000000);
  EXPECT_EQ(human_integer("3G", "x"), std::int64_t{3} << 30);
  EXPECT_EQ(human_integer("1t", "x"), 1000000000000);
  EXPECT_EQ(human_integer("1T", "x"), std::int64_t{1} << 40);
  EXPECT_EQ(human_integer("25.6k", "x"), 25600);
  EXPECT_EQ(human_integer("0.0010000m", "x"), 1000);
  EXPECT_EQ(human_integer("9223372036854775807", "x"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(human_integer("-9223372036854775808", "x"), std::numeric_limits<std::int64_t>::min());
}

TEST(HumanInteger, RefusesEverythingElse) {
  for (const char* text : {"",
                           "-",
                           "+",
                           "k",
                           "-k",
                           "1.5",
                           "1.5K",
                           "1.2345k",
                           ".5k",
                           "1.k",
                           "1e3",
                           "0x10",
                           " 1",
                           "1 ",
                           "1kk",
                           "--1",
                           "1-",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "9300000000000000k",
                           "8388608T",
                           "99999999999999999999.5k",
                           "1_000",
                           "nan",
                           "1\xc2\xa0"}) {
    EXPECT_THROW(human_integer(text, "x"), UserError) << text;
  }
  const std::string message = message_of([] { human_integer("lots", "max-model-len"); });
  EXPECT_TRUE(message.starts_with("[max-model-len] wanted a whole number")) << message;
  EXPECT_NE(message.find("but is \"lots\""), std::string::npos) << message;
}

TEST(DecimalNumber, ReadsFiniteNumbersOnly) {
  EXPECT_EQ(decimal_number("0.7", "x"), 0.7);
  EXPECT_EQ(decimal_number("-1e-3", "x"), -1e-3);
  EXPECT_EQ(decimal_number("2", "x"), 2.0);
  for (const char* text : {"", "1e999", "nan", "inf", "-infinity", "1.0x", " 1", "1 ", "0x1p3", "1,5", "--1"}) {
    EXPECT_THROW(decimal_number(text, "x"), UserError) << text;
  }
}

TEST(Split, TrimsThePartsAndKeepsEmptyOnes) {
  EXPECT_EQ(split_text("a, b ,c", ','), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(split_text("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(split_text(",a,", ','), (std::vector<std::string>{"", "a", ""}));
}

TEST(Trim, RemovesWhiteSpaceAtBothEnds) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, ReplacesEachOccurrence) {
  EXPECT_EQ(replace_all("a--b---c", "--", "+"), "a+b+-c");
  EXPECT_EQ(replace_all("aa", "a", "aa"), "aaaa") << "what was put in is not read again";
  EXPECT_EQ(replace_all("abc", "x", "y"), "abc");
  EXPECT_EQ(replace_all("", "x", "y"), "");
}

}  // namespace weft::text_test
