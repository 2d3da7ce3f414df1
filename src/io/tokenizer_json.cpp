#include "io/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include <simdjson.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

namespace weft {
namespace {

using Element = simdjson::dom::element;

// The ids of a vocabulary may have gaps, but the list by id must not become much longer than the number of tokens.
constexpr size_t kMaxGap = 65536;

// A member with its path in the file, for messages. An absent member and null are equivalent.
struct Member {
  Element json;
  std::string path;
  bool present = false;
};

// Formats JSON for a message: on one line, and cut if it is long.
std::string shown(const Element& json) {
  constexpr size_t kMostBytes = 80;
  std::string text = simdjson::minify(json);
  if (text.size() <= kMostBytes) return text;
  text.resize(kMostBytes);
  text.resize(kMostBytes - incomplete_utf8_suffix(text));
  return text + "...";
}

Member member(const Member& parent, std::string_view key) {
  simdjson::dom::object object;
  if (!parent.present || parent.json.get(object)) {
    fail_user("[tokenizer.json] {} must be an object, but is {}", parent.path,
              parent.present ? shown(parent.json) : "missing");
  }
  Member child;
  child.path = parent.path.empty() ? std::string(key) : parent.path + "." + std::string(key);
  child.present = object.at_key(key).get(child.json) == simdjson::SUCCESS && !child.json.is_null();
  return child;
}

template <class Value>
Value as(const Member& member, const char* what) {
  Value value{};
  const bool fits = member.present && member.json.get(value) == simdjson::SUCCESS;
  USER_CHECK(fits, "[tokenizer.json] {} must be {}, but is {}", member.path, what,
             member.present ? shown(member.json) : "missing");
  return value;
}

std::string_view text_of(const Member& member) { return as<std::string_view>(member, "a string"); }

bool bool_of(const Member& member, bool if_missing) {
  return member.present ? as<bool>(member, "true or false") : if_missing;
}

int id_of(const Member& member) {
  const int64_t id = as<int64_t>(member, "a token id");
  USER_CHECK(id >= 0 && id < std::numeric_limits<int32_t>::max(), "[tokenizer.json] {} must be a token id, but is {}",
             member.path, id);
  return static_cast<int>(id);
}

std::vector<Member> elements_of(const Member& list) {
  std::vector<Member> elements;
  for (const Element element : as<simdjson::dom::array>(list, "a list")) {
    elements.push_back({element, list.path + "[" + std::to_string(elements.size()) + "]", true});
  }
  return elements;
}

[[noreturn]] void refuse(const Member& member) {
  fail_user("[tokenizer.json] {} {} is not supported", member.path, shown(member.json));
}

// Collects the parts of a member that is one item or a Sequence of items, which may be nested. simdjson rejects more
// than 1,024 levels, which bounds the recursion.
void flatten(const Member& part, std::string_view list_key, std::vector<Member>& parts) {
  if (!part.present) return;
  if (text_of(member(part, "type")) != "Sequence") {
    parts.push_back(part);
    return;
  }
  for (const Member& element : elements_of(member(part, list_key))) flatten(element, list_key, parts);
}

std::vector<Member> parts_of(const Member& root, std::string_view key, std::string_view list_key) {
  std::vector<Member> parts;
  flatten(member(root, key), list_key, parts);
  return parts;
}

void place_token(int id, std::string_view text, TokenKind kind, const std::string& path, Vocabulary& vocabulary) {
  std::string& token = vocabulary.tokens[id];
  USER_CHECK(token.empty() || token == text, "[tokenizer.json] {} gives id {} to {}, which {} has already", path, id,
             quote(text), quote(token));
  token = text;
  vocabulary.kinds[id] = kind;
}

// Reads the texts of model.vocab and added_tokens, by id.
void read_tokens(const Member& root, Vocabulary& vocabulary) {
  const Member vocab = member(member(root, "model"), "vocab");
  const simdjson::dom::object entries = as<simdjson::dom::object>(vocab, "an object");
  const Member added_tokens = member(root, "added_tokens");
  const std::vector<Member> added = added_tokens.present ? elements_of(added_tokens) : std::vector<Member>();

  size_t entry_count = added.size();
  int max_id = -1;
  for (const simdjson::dom::key_value_pair entry : entries) {
    ++entry_count;
    int64_t id = -1;
    if (entry.value.get(id) || id < 0 || id >= std::numeric_limits<int32_t>::max()) {
      fail_user("[tokenizer.json] model.vocab must give {} a token id, but gives {}", quote(entry.key),
                shown(entry.value));
    }
    max_id = std::max(max_id, static_cast<int>(id));
  }
  for (const Member& token : added) max_id = std::max(max_id, id_of(member(token, "id")));
  const size_t token_count = static_cast<size_t>(max_id) + 1;
  USER_CHECK(token_count <= entry_count + kMaxGap,
             "[tokenizer.json] ids must leave at most {} gaps, but the largest is {} for {} tokens", kMaxGap, max_id,
             entry_count);

  vocabulary.tokens.resize(token_count);
  vocabulary.kinds.assign(token_count, TokenKind::unused);
  for (const simdjson::dom::key_value_pair entry : entries) {
    place_token(static_cast<int>(int64_t(entry.value)), entry.key, TokenKind::normal, vocab.path, vocabulary);
  }
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
      std::string joined(text.substr(0, space));
      joined += text.substr(space + 1);
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

void read_model(const Member& model, Vocabulary& vocabulary) {
  // Older files without this member have a BPE model.
  const Member type = member(model, "type");
  if (type.present && text_of(type) != "BPE") refuse(type);
  const Member dropout = member(model, "dropout");
  if (dropout.present && as<double>(dropout, "a number") != 0.0) refuse(dropout);
  const Member byte_fallback = member(model, "byte_fallback");
  if (bool_of(byte_fallback, false)) refuse(byte_fallback);
  refuse_text_unless_empty(member(model, "continuing_subword_prefix"));
  refuse_text_unless_empty(member(model, "end_of_word_suffix"));

  const simdjson::dom::array merges = as<simdjson::dom::array>(member(model, "merges"), "a list");
  for (const Element merge : merges) vocabulary.merges.push_back(read_merge(merge, vocabulary.merges.size()));
  vocabulary.ignore_merges = bool_of(member(model, "ignore_merges"), false);
  vocabulary.fuse_unknown = bool_of(member(model, "fuse_unk"), false);
  const Member unknown = member(model, "unk_token");
  if (unknown.present && !text_of(unknown).empty()) {
    const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text_of(unknown));
    USER_CHECK(found != vocabulary.tokens.end(), "[tokenizer.json] {} must be a token, but {} is not in the vocabulary",
               unknown.path, quote(text_of(unknown)));
    vocabulary.unknown = static_cast<int>(found - vocabulary.tokens.begin());
  }
}

SplitBehavior read_behavior(const Member& behavior) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames = {{
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous},
  }};
  const std::string_view wanted = text_of(behavior);
  for (const auto& [name, value] : kNames) {
    if (name == wanted) return value;
  }
  refuse(behavior);
}

PatternSplit read_split(const Member& split) {
  PatternSplit result;
  const Member pattern = member(split, "pattern");
  const Member literal = member(pattern, "String");
  result.is_literal = literal.present;
  result.pattern = text_of(literal.present ? literal : member(pattern, "Regex"));
  result.behavior = read_behavior(member(split, "behavior"));
  result.invert = bool_of(member(split, "invert"), false);
  return result;
}

void read_pre_tokenizer(const Member& root, Vocabulary& vocabulary) {
  bool in_byte_alphabet = false;
  for (const Member& part : parts_of(root, "pre_tokenizer", "pretokenizers")) {
    const Member type = member(part, "type");
    const std::string_view name = text_of(type);
    USER_CHECK(!in_byte_alphabet, "[tokenizer.json] pre-tokenizer ByteLevel must be the last, but {} {} follows",
               type.path, quote(name));
    if (name == "Split") {
      vocabulary.steps.emplace_back(read_split(part));
    } else if (name == "Digits") {
      vocabulary.steps.emplace_back(DigitSplit{.individual = bool_of(member(part, "individual_digits"), false)});
    } else if (name == "ByteLevel") {
      if (bool_of(member(part, "add_prefix_space"), true)) vocabulary.steps.emplace_back(PrefixSpace{});
      if (bool_of(member(part, "use_regex"), true)) {
        vocabulary.steps.emplace_back(PatternSplit{.pattern = std::string(kGpt2Pattern)});
      }
      in_byte_alphabet = true;
    } else {
      refuse(type);
    }
  }
  USER_CHECK(in_byte_alphabet, "[tokenizer.json] pre_tokenizer must end with ByteLevel, but has none");
}

void read_normalizer(const Member& root, Vocabulary& vocabulary) {
  for (const Member& part : parts_of(root, "normalizer", "normalizers")) {
    const Member type = member(part, "type");
    if (text_of(type) != "NFC") refuse(type);
    vocabulary.normalizer = Normalizer::nfc;
  }
}

// {"single": [{"SpecialToken": {"id": NAME}}, {"Sequence": {"id": "A"}}, ...], "special_tokens": {NAME: {"ids": [..]}}}
void read_template(const Member& processor, Vocabulary& vocabulary) {
  bool after_text = false;
  for (const Member& item : elements_of(member(processor, "single"))) {
    if (member(item, "Sequence").present) {
      USER_CHECK(!after_text, "[tokenizer.json] {} must have the text once, but repeats it", item.path);
      after_text = true;
      continue;
    }
    const std::string_view name = text_of(member(member(item, "SpecialToken"), "id"));
    const Member ids = member(member(member(processor, "special_tokens"), name), "ids");
    for (const Member& id : elements_of(ids)) {
      (after_text ? vocabulary.suffix : vocabulary.prefix).push_back(id_of(id));
    }
  }
  USER_CHECK(after_text, "[tokenizer.json] {}.single must have the text, but lacks it", processor.path);
  if (!vocabulary.prefix.empty()) vocabulary.bos = vocabulary.prefix.front();
}

void read_post_processor(const Member& root, Vocabulary& vocabulary) {
  bool has_template = false;
  for (const Member& part : parts_of(root, "post_processor", "processors")) {
    const Member type = member(part, "type");
    if (text_of(type) == "ByteLevel") continue;
    if (text_of(type) != "TemplateProcessing") refuse(type);
    USER_CHECK(!has_template, "[tokenizer.json] post_processor must have one TemplateProcessing, but has more");
    has_template = true;
    read_template(part, vocabulary);
  }
}

void check_decoder(const Member& root) {
  bool is_byte_level = false;
  for (const Member& part : parts_of(root, "decoder", "decoders")) {
    const Member type = member(part, "type");
    if (text_of(type) != "ByteLevel" && text_of(type) != "Fuse") refuse(type);
    is_byte_level = is_byte_level || text_of(type) == "ByteLevel";
  }
  USER_CHECK(is_byte_level, "[tokenizer.json] decoder must be ByteLevel, but is missing");
}

}  // namespace

Vocabulary read_tokenizer_json(std::string_view json_text) {
  simdjson::dom::parser parser;
  Member root;
  root.present = true;
  const simdjson::error_code error = parser.parse(json_text.data(), json_text.size()).get(root.json);
  if (error) fail_user("[tokenizer.json] must be JSON: {}", simdjson::error_message(error));
  if (!root.json.is_object()) fail_user("[tokenizer.json] must be an object");
  Vocabulary vocabulary;
  read_tokens(root, vocabulary);
  read_model(member(root, "model"), vocabulary);
  read_normalizer(root, vocabulary);
  read_pre_tokenizer(root, vocabulary);
  read_post_processor(root, vocabulary);
  check_decoder(root);
  return vocabulary;
}

}  // namespace weft
