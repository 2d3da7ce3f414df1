#include "io/space_cuts.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::space_cuts_test {

std::vector<std::string> cut(const std::vector<std::string>& tokens, std::string_view text) {
  Vocabulary vocabulary;
  vocabulary.byte_alphabet = false;
  vocabulary.tokens = tokens;
  vocabulary.kinds.assign(tokens.size(), TokenKind::normal);
  const SpaceCuts cuts(vocabulary);
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = cuts.next(text, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

using Strings = std::vector<std::string>;

TEST(SpaceCuts, CutsInFrontOfRunsOfMarks) {
  EXPECT_EQ(cut({"\u2581", "\u2581a"}, "\u2581a\u2581\u2581bc\u2581"),
            (Strings{"\u2581a", "\u2581\u2581bc", "\u2581"}));
  EXPECT_EQ(cut({"\u2581"}, "\u2581\u2581"), (Strings{"\u2581\u2581"}));
  EXPECT_EQ(cut({"\u2581"}, ""), (Strings{}));
}

TEST(SpaceCuts, ATokenAcrossABorderPreventsAllCuts) {
  EXPECT_EQ(cut({"\u2581", "a\u2581b"}, "c\u2581d"), (Strings{"c\u2581d"}));
  EXPECT_EQ(cut({"\u2581", "\u2581\u2581"}, "c\u2581d"), (Strings{"c", "\u2581d"}));
}

TEST(SpaceCuts, AMarkThatIsNoTokenIsNotCut) { EXPECT_EQ(cut({"a"}, "a\u2581a"), (Strings{"a\u2581a"})); }

}  // namespace weft::space_cuts_test
