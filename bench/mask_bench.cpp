// How long the masks of grammars take, over a vocabulary of 150,000 random pieces: words, numbers, punctuation, runs of
// white space and characters of several scripts.
//
//   mask_bench
//
// "new": nothing is known of the grammar's states; "walked": the states are known, but no mask; "kept": the mask is in
// the cache. The best of several rounds.

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/json.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "grammar/ebnf.h"
#include "grammar/json_schema.h"
#include "grammar/regex.h"
#include "grammar/token_masks.h"

namespace weft {
namespace {

constexpr std::size_t kPieces = 150'000;
constexpr int kRounds = 9;

// About the shares of a vocabulary for many languages: half of it are words with a space before them.
std::vector<std::string> random_pieces() {
  std::mt19937 random(1);
  std::set<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.insert(std::string(1, static_cast<char>(byte)));
  const auto below = [&](unsigned count) { return random() % count; };
  const auto repeated = [&](std::string_view characters) {
    std::string text;
    for (std::size_t i = 1 + below(4); i > 0; --i) text += characters[below(static_cast<unsigned>(characters.size()))];
    return text;
  };
  const auto word = [&] {
    std::string text;
    for (std::size_t i = 1 + below(4); i > 0; --i) {
      text += "bcdfghlmnprst"[below(13)];
      text += "aeiou"[below(5)];
      if (below(3) == 0) text += "lnrst"[below(5)];
    }
    if (below(4) == 0) text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  };
  const auto foreign = [&](char32_t first, unsigned count, unsigned longest) {
    std::string text;
    for (std::size_t i = 1 + below(longest); i > 0; --i) append_utf8(first + below(count), text);
    return text;
  };
  while (pieces.size() < kPieces) {
    const unsigned kind = below(100);
    const std::string space = below(2) == 0 ? " " : "";
    if (kind < 65) pieces.insert(space + word());
    if (kind >= 65 && kind < 72) pieces.insert(space + repeated("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"));
    if (kind >= 72 && kind < 74) pieces.insert(repeated("0123456789").substr(0, 3));
    if (kind >= 74 && kind < 76) pieces.insert(repeated(" \n\t\r"));
    if (kind >= 76 && kind < 88) pieces.insert(space + foreign(0x430, 32, 6));
    if (kind >= 88 && kind < 98) pieces.insert(foreign(0x4E00, 2000, 3));
    if (kind >= 98) pieces.insert(foreign(0xE9, 20, 1) + word());
  }
  return {pieces.begin(), pieces.end()};
}

struct Case {
  const char* name;
  grammar::Grammar made;
  std::string text;  // before the mask
};

grammar::Grammar of_regex(const char* pattern) {
  grammar::Grammar made;
  made.root = made.add("root", grammar::read_regex(pattern));
  return made;
}

grammar::Grammar of_schema(const char* schema) { return grammar::schema_grammar(parse_json(schema), {}); }

std::vector<Case> cases() {
  return {
      {"any JSON, within a string", of_schema("{}"), R"({"a": [1, "b)"},
      {"any JSON, within a number", of_schema("{}"), R"({"a": [1, 2)"},
      {"any JSON, before a value", of_schema("{}"), R"({"a": [1, )"},
      {"at most 100 characters", of_schema(R"({"type":"string","maxLength":100})"), "\"a"},
      {"at most 5 characters", of_schema(R"({"type":"string","maxLength":5})"), "\"a"},
      {"pattern ^[a-z ]+$", of_schema(R"({"type":"string","pattern":"^[a-z ]+$"})"), "\"a"},
      {"email, at most 254 characters", of_schema(R"({"format":"email","maxLength":254})"), "\"a"},
      {"email, 8 characters left", of_schema(R"({"format":"email","maxLength":254})"), "\"" + std::string(246, 'a')},
      {"uri, at most 2083 characters", of_schema(R"({"format":"uri","maxLength":2083})"), "\"https://a"},
      {"[A-Z], at most 4000 characters", of_schema(R"({"pattern":"[A-Z]","maxLength":4000})"), "\"a"},
      {"[A-Z], at most 20 characters", of_schema(R"({"pattern":"[A-Z]","maxLength":20})"), "\"a"},
      {"key that is not one of ten",
       of_schema(R"({"properties":{"name":{},"note":{},"id":{},"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{}}})"),
       "{\"n"},
      {"regex .*", of_regex(".*"), "a"},
      {"regex ([a-z]+ )*", of_regex("([a-z]+ )*"), "a"},
      {"grammar of words", grammar::read_ebnf("root ::= (word \" \")* word\nword ::= [a-zA-Z]+ [.,]?"), "a"}};
}

double best_of(const std::function<double()>& round) {
  double best = round();
  for (int i = 1; i < kRounds; ++i) best = std::min(best, round());
  return best;
}

void measure(const Case& one, const grammar::TokenTrie& trie) {
  const grammar::CompiledGrammar compiled(one.made);
  const auto at_text = [&](grammar::ParserStates& states) {
    grammar::StateId state = states.start();
    for (const char byte : one.text) state = states.step(state, static_cast<std::uint8_t>(byte));
    return state;
  };
  const auto milliseconds = [](const std::function<void()>& run) {
    Stopwatch watch;
    run();
    return watch.lap("mask");
  };
  std::size_t allowed = 0;
  const double fresh = best_of([&] {
    grammar::ParserStates states(compiled);
    grammar::MaskCache cache(64 << 20);
    grammar::TokenMasks masks(states, trie, cache);
    const grammar::StateId state = at_text(states);
    return milliseconds([&] { masks.mask(state); });
  });
  grammar::ParserStates states(compiled);
  grammar::MaskCache cache(64 << 20);
  grammar::TokenMasks masks(states, trie, cache);
  const grammar::StateId state = at_text(states);
  masks.mask(state);
  const double kept = best_of([&] { return milliseconds([&] { masks.mask(state); }); });
  const double walked = best_of([&] {
    masks.forget();
    return milliseconds([&] { masks.mask(state); });
  });
  for (const std::uint64_t word : masks.mask(state)->tokens)
    allowed += static_cast<std::size_t>(__builtin_popcountll(word));
  fmt::print("{:32} {:8} {:10.3f} {:10.3f} {:10.4f}\n", one.name, allowed, fresh, walked, kept);
}

int run() {
  const std::vector<std::string> pieces = random_pieces();
  const std::vector<std::string_view> views(pieces.begin(), pieces.end());
  Stopwatch watch;
  const grammar::TokenTrie trie(views);
  fmt::print("{} pieces, {} nodes, made in {:.1f} ms\n", pieces.size(), trie.size(), watch.lap("trie"));
  fmt::print("{:32} {:>8} {:>10} {:>10} {:>10}\n", "masks, ms", "allowed", "new", "walked", "kept");
  for (const Case& one : cases()) measure(one, trie);
  return 0;
}

}  // namespace
}  // namespace weft

int main() { return weft::run(); }
