#include "tests/grammar/grammar_texts.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::size_t kLongestText = 3000;

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

}  // namespace

std::vector<std::string> small_vocabulary() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.push_back(std::string(1, static_cast<char>(byte)));
  for (const char* text :
       {"{\"",     "\":",    "\": ",     "\": \"",   "\",",      "\", \"",  "\"}",     "\"]",  "}}",    "]]",
        "[[",      "{}",     "[]",       "}, {",     "},{\"",    "],",      "],[",     "true", "false", "null",
        "true,",   "null}",  "12",       "3.5",      "-1",       "0,",      "1]",      "1}",   "e+",    ",\n  ",
        "{\n  \"", "\n}",    "\n]",      "ab",       "abc",      "name",    "name\":", "\\n",  "\\u00", "\\\"",
        "\u00e9",  "\u20ac", "\xF0\x9F", "\xE2\x82", "\x98\x80", " ",       "  ",      "    ", "a",     "id",
        "2024-",   "-02-2",  "@x.",      "::",       "",         "\": {\"", "\": [",   "\": 1"})
    texts.emplace_back(text);
  return texts;
}

TextWriter::TextWriter(const grammar::Grammar& grammar, const std::vector<std::string>& texts)
    : texts_(texts), compiled_(grammar), states_(compiled_), trie_(views_of(texts_)), masks_(states_, trie_, cache_) {}

std::uint32_t TextWriter::depth_after(grammar::StateId state, int token) {
  return states_.depth(state_after(states_, state, texts_[static_cast<std::size_t>(token)]));
}

std::string TextWriter::write(std::mt19937& random) {
  std::string text;
  grammar::StateId state = states_.start();
  while (text.size() < kLongestText) {
    const auto mask = masks_.mask(state);
    EXPECT_EQ(mask->tokens, masks_.walked_mask(state)) << text;
    std::vector<int> allowed;
    for (std::size_t id = 0; id < texts_.size(); ++id)
      if (grammar::has_token(mask->tokens, static_cast<int>(id))) allowed.push_back(static_cast<int>(id));
    const bool may_end = states_.may_end(state);
    if (may_end && (allowed.empty() || random() % 3 == 0)) return text;
    if (allowed.empty()) break;
    // A long text draws several times and takes what leads out of the most rules, so that the walk comes to an end.
    int token = allowed[random() % allowed.size()];
    for (int i = 0; i < 20 && text.size() > 40; ++i) {
      const int other = allowed[random() % allowed.size()];
      if (depth_after(state, other) < depth_after(state, token)) token = other;
    }
    const std::string& written = texts_[static_cast<std::size_t>(token)];
    state = state_after(states_, state, written);
    text += written;
    EXPECT_NE(state, grammar::kDead) << text;
  }
  ADD_FAILURE() << "no token may follow, or the text does not end: " << text;
  return "";
}

}  // namespace weft
