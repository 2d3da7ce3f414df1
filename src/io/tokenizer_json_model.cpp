// The members model and added_tokens of tokenizer.json.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <future>
#include <limits>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/huge_pages.h"
#include "base/text.h"
#include "io/added_tokens.h"
#include "io/byte_alphabet.h"
#include "io/fallback_tokens.h"
#include "io/tokenizer_json_parts.h"

namespace weft::tokenizer_json {
namespace {

constexpr int kMostDecimals = 308;  // 1e308 is the largest power of ten

struct Piece {
  std::string_view text;
  int id = 0;
  double score = 0;
};

void place_token(int id, std::string_view text, TokenKind kind, const std::string& path, Vocabulary& vocabulary) {
  std::string& token = vocabulary.tokens[id];
  USER_CHECK(token.empty() || token == text, "[tokenizer.json] {} gives id {} to {}, which {} has already", path, id,
             quote(text), quote(token));
  token = text;
  vocabulary.kinds[id] = kind;
}

// 1, 10, ... as the nearest numbers.
const std::array<double, kMostDecimals + 1>& powers_of_ten() {
  static const auto kPowers = [] {
    std::array<double, kMostDecimals + 1> powers{};
    for (size_t i = 0; i < powers.size(); ++i) {
      const std::string text = fmt::format("1e{}", i);
      std::from_chars(text.data(), text.data() + text.size(), powers[i]);
    }
    return powers;
  }();
  return kPowers;
}

// serde_json, with which Hugging Face reads the file, divides the digits of a number by a power of ten. The quotient
// may differ from the nearest number in the last bit, which decides between paths with equal sums. Scores are written
// with the fewest digits, so these are the digits of the file.
double as_read_by_serde(double score) {
  std::array<char, 32> text{};
  const char* const end =
      std::to_chars(text.data(), text.data() + text.size(), std::abs(score), std::chars_format::scientific).ptr;
  uint64_t digits = 0;
  int exponent = 0, decimals = 0;
  bool after_point = false;
  for (const char* at = text.data(); at != end; ++at) {
    if (*at == 'e') {
      std::from_chars(at[1] == '+' ? at + 2 : at + 1, end, exponent);
      break;
    }
    if (*at == '.') {
      after_point = true;
    } else {
      digits = digits * 10 + static_cast<uint64_t>(*at - '0');
      decimals += after_point ? 1 : 0;
    }
  }
  decimals -= exponent;
  if (decimals <= 0 || decimals > kMostDecimals) return score;
  return std::copysign(static_cast<double>(digits) / powers_of_ten()[static_cast<size_t>(decimals)], score);
}

// Calls visit(piece) with each member of {"text": id, ...}.
template <class Visit>
void visit_pieces_by_text(const simdjson::dom::object& entries, const Visit& visit) {
  for (const simdjson::dom::key_value_pair entry : entries) {
    int64_t id = -1;
    if (entry.value.get(id) || id < 0 || id >= std::numeric_limits<int32_t>::max()) {
      fail_user("[tokenizer.json] model.vocab must give {} a token id, but gives {}", quote(entry.key),
                shown(entry.value));
    }
    visit(Piece{entry.key, static_cast<int>(id)});
  }
}

// The same of [["text", score], ...], which are in the order of the ids.
template <class Visit>
void visit_pieces_with_scores(const simdjson::dom::array& entries, const Visit& visit) {
  int id = 0;
  for (const Element entry : entries) {
    simdjson::dom::array pair;
    std::string_view text;
    double score = 0;
    const bool fits = entry.get(pair) == simdjson::SUCCESS && pair.size() == 2 && !pair.at(0).get(text) &&
                      !pair.at(1).get(score) && std::isfinite(score);
    USER_CHECK(fits, "[tokenizer.json] model.vocab[{}] must be a text and a score, but is {}", id, shown(entry));
    visit(Piece{text, id++, score});
  }
}

// The pieces are visited twice: a list of them would take longer than that.
template <class Visit>
void visit_pieces(const Member& vocab, bool has_scores, const Visit& visit) {
  if (has_scores) {
    visit_pieces_with_scores(as<simdjson::dom::array>(vocab, "a list"), visit);
  } else {
    visit_pieces_by_text(as<simdjson::dom::object>(vocab, "an object"), visit);
  }
}

void read_tokens(const Member& root, const Member& vocab, Vocabulary& vocabulary) {
  const bool has_scores = vocabulary.model == TokenModel::unigram;
  const Member added_tokens = member(root, "added_tokens");
  const std::vector<Member> added = added_tokens.present ? elements_of(added_tokens) : std::vector<Member>();

  int max_id = -1;
  size_t piece_count = 0;
  visit_pieces(vocab, has_scores, [&](const Piece& piece) {
    max_id = std::max(max_id, piece.id);
    ++piece_count;
  });
  for (const Member& token : added) max_id = std::max(max_id, id_of(member(token, "id")));
  const size_t token_count = static_cast<size_t>(max_id) + 1;
  USER_CHECK(token_count <= piece_count + added.size() + static_cast<size_t>(kMaxIdGap),
             "[tokenizer.json] ids must leave at most {} gaps, but the largest is {} for {} tokens", kMaxIdGap, max_id,
             piece_count + added.size());

  reserve_in_huge_pages(vocabulary.tokens, token_count);
  vocabulary.tokens.resize(token_count);
  vocabulary.kinds.assign(token_count, TokenKind::unused);
  if (has_scores) vocabulary.scores.assign(token_count, 0.0);
  vocabulary.in_model.assign(token_count, false);
  visit_pieces(vocab, has_scores, [&](const Piece& piece) {
    place_token(piece.id, piece.text, TokenKind::normal, vocab.path, vocabulary);
    vocabulary.in_model[static_cast<size_t>(piece.id)] = true;
    if (has_scores) vocabulary.scores[static_cast<size_t>(piece.id)] = as_read_by_serde(piece.score);
  });
  for (const Member& token : added) {
    const int id = id_of(member(token, "id"));
    const bool is_special = bool_of(member(token, "special"), false);
    place_token(id, text_of(member(token, "content")), is_special ? TokenKind::control : TokenKind::user_defined,
                token.path, vocabulary);
    vocabulary.added_tokens.push_back({.id = id,
                                       .single_word = bool_of(member(token, "single_word"), false),
                                       .strip_left = bool_of(member(token, "lstrip"), false),
                                       .strip_right = bool_of(member(token, "rstrip"), false),
                                       .normalized = bool_of(member(token, "normalized"), !is_special)});
  }
}

// Older files write a merge as "left right", newer ones as ["left", "right"].
Merge read_merge(Element json, size_t rank) {
  std::string_view text;
  if (json.get(text) == simdjson::SUCCESS) {
    const size_t space = text.find(' ');
    if (space != std::string_view::npos && space > 0 && space + 1 < text.size()) {
      std::string joined(text);
      joined.erase(space, 1);
      return {std::move(joined), static_cast<uint32_t>(space)};
    }
  }
  simdjson::dom::array pair;
  std::string_view left, right;
  if (json.get(pair) == simdjson::SUCCESS && pair.size() == 2 && !pair.at(0).get(left) && !pair.at(1).get(right)) {
    std::string joined(left);
    joined += right;
    return {std::move(joined), static_cast<uint32_t>(left.size())};
  }
  fail_user("[tokenizer.json] model.merges[{}] must be two tokens, but is {}", rank, shown(json));
}

void refuse_text_unless_empty(const Member& member) {
  if (member.present && !text_of(member).empty()) refuse(member);
}

void read_byte_fallback(const Member& model, Vocabulary& vocabulary) {
  // In the byte-level alphabet, each byte has a token already.
  if (vocabulary.byte_alphabet || !bool_of(member(model, "byte_fallback"), false)) return;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.kinds[id] == TokenKind::normal && byte_of_token(vocabulary.tokens[id]))
      vocabulary.kinds[id] = TokenKind::byte;
  }
}

std::vector<Merge> merges_of(const Member& model) {
  const simdjson::dom::array list = as<simdjson::dom::array>(member(model, "merges"), "a list");
  std::vector<Merge> merges;
  reserve_in_huge_pages(merges, list.size());
  for (const Element merge : list) merges.push_back(read_merge(merge, merges.size()));
  return merges;
}

bool has_all_bytes(const Vocabulary& vocabulary) {
  std::set<std::string_view> missing;
  for (int byte = 0; byte < 256; ++byte) missing.insert(text_of_byte(static_cast<uint8_t>(byte)));
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (vocabulary.in_model[id]) missing.erase(vocabulary.tokens[id]);
  return missing.empty();
}

void read_merges(const Member& model, std::future<std::vector<Merge>> merges, Vocabulary& vocabulary) {
  const Member dropout = member(model, "dropout");
  if (dropout.present && as<double>(dropout, "a number") != 0.0) refuse(dropout);
  refuse_text_unless_empty(member(model, "continuing_subword_prefix"));
  refuse_text_unless_empty(member(model, "end_of_word_suffix"));
  vocabulary.merges = merges.get();
  vocabulary.ignore_merges = bool_of(member(model, "ignore_merges"), false);
  vocabulary.fuse_unknown = bool_of(member(model, "fuse_unk"), false);
  const Member unknown = member(model, "unk_token");
  if (!unknown.present || text_of(unknown).empty()) return;
  if (vocabulary.byte_alphabet && has_all_bytes(vocabulary)) {
    vocabulary.unknown = find_token(text_of(unknown), vocabulary);
    // No text is unknown there.
    if (!vocabulary.unknown)
      vocabulary.warnings.push_back(
          fmt::format("[tokenizer.json] {} {} is left out: there is no such token", unknown.path, shown(unknown.json)));
  } else {
    vocabulary.unknown = find_token(unknown, vocabulary);
  }
}

void read_unigram(const Member& model, Vocabulary& vocabulary) {
  vocabulary.fuse_unknown = true;
  vocabulary.sums_in_double = true;
  const Member unknown = member(model, "unk_id");
  if (unknown.present) {
    vocabulary.unknown = id_of(unknown);
    USER_CHECK(static_cast<size_t>(*vocabulary.unknown) < vocabulary.tokens.size(),
               "[tokenizer.json] {} must be an id below {}, but is {}", unknown.path, vocabulary.tokens.size(),
               *vocabulary.unknown);
  }
}

void read_word_piece(const Member& model, Vocabulary& vocabulary) {
  vocabulary.unknown = find_token(member(model, "unk_token"), vocabulary);
  vocabulary.continuation = text_of(member(model, "continuing_subword_prefix"), "##");
  const Member longest = member(model, "max_input_chars_per_word");
  if (longest.present) vocabulary.max_word_characters = as<uint64_t>(longest, "a number of characters");
}

// Files of older versions have no type.
std::string_view type_of(const Member& model) {
  const Member type = member(model, "type");
  if (type.present) return text_of(type);
  const Member vocab = member(model, "vocab");
  return vocab.present && vocab.json.is_array() ? "Unigram" : "BPE";
}

}  // namespace

void read_model(const Member& root, Vocabulary& vocabulary) {
  const Member model = member(root, "model");
  const std::string_view type = type_of(model);
  if (type == "Unigram") {
    vocabulary.model = TokenModel::unigram;
  } else if (type == "WordPiece") {
    vocabulary.model = TokenModel::word_piece;
  } else if (type != "BPE") {
    refuse(member(model, "type"));
  }
  USER_CHECK(type == "BPE" || !vocabulary.byte_alphabet,
             "[tokenizer.json] a {} model must have no ByteLevel pre-tokenizer, but has one", type);
  // Read beside the tokens. A future of std::async waits for its end, so `model` stays valid.
  std::future<std::vector<Merge>> merges;
  if (type == "BPE") merges = std::async([&] { return merges_of(model); });
  read_tokens(root, member(model, "vocab"), vocabulary);
  read_byte_fallback(model, vocabulary);
  switch (vocabulary.model) {
    case TokenModel::unigram:
      return read_unigram(model, vocabulary);
    case TokenModel::word_piece:
      return read_word_piece(model, vocabulary);
    case TokenModel::merges:
    case TokenModel::scores:
      break;
  }
  read_merges(model, std::move(merges), vocabulary);
}

}  // namespace weft::tokenizer_json
