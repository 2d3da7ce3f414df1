#include "io/tokenizer_json_parts.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "base/utf8.h"

namespace weft::tokenizer_json {

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

std::string_view text_of(const Member& member) { return as<std::string_view>(member, "a string"); }

std::string_view text_of(const Member& member, std::string_view if_missing) {
  return member.present ? text_of(member) : if_missing;
}

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

namespace {

// simdjson rejects more than 1,024 levels, which bounds the recursion.
void flatten(const Member& part, std::string_view list_key, std::vector<Member>& parts) {
  if (!part.present) return;
  if (text_of(member(part, "type")) != "Sequence") {
    parts.push_back(part);
    return;
  }
  for (const Member& element : elements_of(member(part, list_key))) flatten(element, list_key, parts);
}

}  // namespace

std::vector<Member> parts_of(const Member& root, std::string_view key, std::string_view list_key) {
  std::vector<Member> parts;
  flatten(member(root, key), list_key, parts);
  return parts;
}

int find_token(const Member& name, const Vocabulary& vocabulary) {
  const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text_of(name));
  USER_CHECK(found != vocabulary.tokens.end(), "[tokenizer.json] {} must be a token, but {} is not in the vocabulary",
             name.path, quote(text_of(name)));
  return static_cast<int>(found - vocabulary.tokens.begin());
}

}  // namespace weft::tokenizer_json
