#pragma once

// The parts that read tokenizer.json, and how they read its members.

#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "base/error.h"
#include "io/vocabulary.h"

namespace weft::tokenizer_json {

using Element = simdjson::dom::element;

// A member with its path in the file, for messages. An absent member and null are equivalent.
struct Member {
  Element json;
  std::string path;
  bool present = false;
};

// Formats JSON for a message: on one line, and cut if it is long.
std::string shown(const Element& json);

Member member(const Member& parent, std::string_view key);

template <class Value>
Value as(const Member& member, const char* what) {
  Value value{};
  const bool fits = member.present && member.json.get(value) == simdjson::SUCCESS;
  USER_CHECK(fits, "[tokenizer.json] {} must be {}, but is {}", member.path, what,
             member.present ? shown(member.json) : "missing");
  return value;
}

std::string_view text_of(const Member& member);
std::string_view text_of(const Member& member, std::string_view if_missing);
bool bool_of(const Member& member, bool if_missing);
int id_of(const Member& member);
std::vector<Member> elements_of(const Member& list);
[[noreturn]] void refuse(const Member& member);

// The parts of a member that is one item or a Sequence of items, which may be nested.
std::vector<Member> parts_of(const Member& root, std::string_view key, std::string_view list_key);

// Texts, kinds and scores of the tokens, and the model.
void read_model(const Member& root, Vocabulary& vocabulary);
void read_normalizer(const Member& root, Vocabulary& vocabulary);
// Sets Vocabulary::byte_alphabet.
void read_pre_tokenizer(const Member& root, Vocabulary& vocabulary);
void read_decoder(const Member& root, Vocabulary& vocabulary);
// The id of a token that the file names by its text.
int find_token(const Member& name, const Vocabulary& vocabulary);

}  // namespace weft::tokenizer_json
