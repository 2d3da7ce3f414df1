#include "io/character_set.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>

#include <fmt/core.h>
#include <pcre2.h>

namespace weft {
namespace {

struct DeleteCode {
  void operator()(pcre2_code_8* code) const { pcre2_code_free(code); }
};

bool is_valid(const std::string& pattern) {
  int error = 0;
  size_t offset = 0;
  const std::unique_ptr<pcre2_code_8, DeleteCode> code(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
  return code != nullptr;
}

// Only the names of scripts are valid after "sc:".
bool is_script(std::string_view name) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ' ' || c == '-';
  };
  return std::all_of(name.begin(), name.end(), is_part) && is_valid(fmt::format("\\p{{sc:{}}}", name));
}

constexpr std::string_view kWords = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// Outside of classes, Oniguruma takes words from a table of Latin-1, which also has ², ³, ¹ and the fractions.
constexpr std::string_view kLatinWords = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

std::vector<CharacterRange> word_additions() {
  std::vector<CharacterRange> ranges;
  // New characters of the category Nl are alphabetic, and no other new ones outside of L and M are.
  for (const std::string_view category : {"L", "M", "Nd", "Nl", "Pc"})
    for (const CharacterRange range : unicode_additions(category)) ranges.push_back(range);
  return ranges;
}

std::string word_class() {
  CharacterSet words;
  words.add_words(false, false);
  return words.text();
}

}  // namespace

void CharacterSet::add_property(std::string_view name, bool is_negated) {
  const bool has_script = is_script(name);
  const std::string full_name = has_script ? fmt::format("sc:{}", name) : std::string(name);
  std::vector<CharacterRange> additions = unicode_additions(name);
  if (is_negated && !additions.empty()) {
    complements_.push_back(fmt::format("\\p{{{}}}{}", full_name, class_text(std::move(additions))));
    return;
  }
  items_ += fmt::format("\\{}{{{}}}", is_negated ? 'P' : 'p', full_name);
  additions_.insert(additions_.end(), additions.begin(), additions.end());
}

void CharacterSet::add_words(bool is_negated, bool in_class) {
  std::vector<CharacterRange> additions = word_additions();
  const std::string words = std::string(kWords) + std::string(in_class ? "" : kLatinWords);
  if (is_negated) {
    complements_.push_back(words + class_text(std::move(additions)));
    return;
  }
  items_ += words;
  additions_.insert(additions_.end(), additions.begin(), additions.end());
}

void CharacterSet::add_set(const CharacterSet& other) {
  items_ += other.items_;
  additions_.insert(additions_.end(), other.additions_.begin(), other.additions_.end());
  complements_.insert(complements_.end(), other.complements_.begin(), other.complements_.end());
}

bool CharacterSet::add_complement(const CharacterSet& other) {
  if (!other.complements_.empty()) return false;
  complements_.push_back(other.items_ + class_text(other.additions_));
  return true;
}

std::string CharacterSet::text(bool is_negated) const {
  // PCRE2 matches a property faster than a class with that property alone.
  const bool is_property = items_.starts_with("\\p{") || items_.starts_with("\\P{");
  const bool is_alone = is_property && items_.find('}') + 1 == items_.size();
  if (is_alone && additions_.empty() && complements_.empty() && !is_negated) return items_;
  std::vector<std::string> parts;
  if (!items_.empty()) parts.push_back(fmt::format("{}{}]", items_, class_text(additions_)));
  if (complements_.empty()) return (is_negated ? "[^" : "[") + parts.front();
  for (const std::string& one : complements_) parts.push_back(fmt::format("^{}]", one));
  if (!is_negated) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "[" : "|[") + part;
    return parts.size() == 1 ? text : fmt::format("(?:{})", text);
  }
  // A character outside of all parts. The last part is a complement, so its own class has the characters it lacks.
  std::string text;
  for (size_t i = 0; i + 1 < parts.size(); ++i) text += fmt::format("(?![{})", parts[i]);
  text += "[" + complements_.back() + "]";
  return parts.size() == 1 ? text : fmt::format("(?:{})", text);
}

std::string word_boundary() { return fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word_class()); }

std::string no_word_boundary() { return fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word_class()); }

}  // namespace weft
