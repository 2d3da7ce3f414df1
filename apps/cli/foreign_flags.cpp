#include "apps/cli/foreign_flags.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

struct Row {
  enum Kind : std::uint8_t { same, read_as, read_as_one_of, no_effect, no_effect_of, no_effect_on_off, refused };
  Kind kind;
  const char* names;        // "-c,--ctx-size"
  const char* says;         // Weft's flag, the reason or the advice
  const char* values = "";  // as foreign_flags.def says
};

constexpr Row kRows[] = {
#define SAME(names, flag) {Row::same, names, flag},
#define READ_AS(names, flag, values) {Row::read_as, names, flag, values},
#define READ_AS_ONE_OF(names, flag, values) {Row::read_as_one_of, names, flag, values},
#define NO_EFFECT(names, reason) {Row::no_effect, names, reason},
#define NO_EFFECT_OF(names, values, reason) {Row::no_effect_of, names, reason, values},
#define NO_EFFECT_ON_OFF(names, reason) {Row::no_effect_on_off, names, reason},
#define REFUSED(names, advice) {Row::refused, names, advice},
#include "apps/cli/foreign_flags.def"
#undef SAME
#undef READ_AS
#undef READ_AS_ONE_OF
#undef NO_EFFECT
#undef NO_EFFECT_OF
#undef NO_EFFECT_ON_OFF
#undef REFUSED
};

const Row* find_row(const std::string& flag) {
  for (const Row& row : kRows) {
    const std::vector<std::string> names = split_text(row.names, ',');
    if (std::find(names.begin(), names.end(), flag) != names.end()) return &row;
  }
  return nullptr;
}

// Both programs take `_` for `-` in long flags.
std::string with_dashes(std::string name) {
  if (name.starts_with("--")) std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool is_on_or_off(const std::string& word) {
  constexpr std::string_view kWords[] = {"on", "off", "auto", "true", "false", "t", "f", "0", "1"};
  return std::find(std::begin(kWords), std::end(kWords), to_lower_ascii(word)) != std::end(kWords);
}

// 1.0 is the value 1.
bool is_same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  try {
    return decimal_number(a, "") == decimal_number(b, "");
  } catch (const UserError&) {
    return false;
  }
}

class Translation {
 public:
  Translation(const std::vector<std::string>& words, const FlagsOfVerb& verb) : words_(words), verb_(verb) {}

  std::vector<std::string> run() {
    while (at_ < words_.size()) {
      if (words_[at_] == "--") {  // everything after it is no flag
        result_.insert(result_.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
        break;
      }
      take_word();
    }
    USER_CHECK(problems_.empty(), "[{}] {}", verb_.name, fmt::join(problems_, "; "));
    return std::move(result_);
  }

  void report(const NoteFunction& note) const {
    std::vector<std::string> pairs;
    for (const auto& [name, flag] : read_as_) pairs.push_back(fmt::format("{} as {}", name, flag));
    if (!pairs.empty()) note(fmt::format("read here: {}", fmt::join(pairs, ", ")));
    note_without_effect(without_effect_, note);
  }

 private:
  void take_word() {
    const std::string& word = words_[at_++];
    const std::string name = word.substr(0, word.find('=')), flag = with_dashes(name);
    const bool has_value = name.size() < word.size();
    const Row* row = nullptr;
    if (word.size() > 1 && word[0] == '-') {
      const std::optional<bool> known = verb_.takes_value(name);
      if (!known) row = find_row(flag);
      if (row != nullptr)
        return take_foreign(*row, flag, has_value ? std::optional(word.substr(name.size() + 1)) : std::nullopt);
      result_.push_back(word);
      if (known.value_or(false) && !has_value && at_ < words_.size()) result_.push_back(words_[at_++]);
      return;
    }
    result_.push_back(word);
  }

  std::string next_value(const std::string& flag) {
    USER_CHECK(at_ < words_.size(), "[{}] wanted a value, but the command line ends", flag);
    return words_[at_++];
  }

  void take_foreign(const Row& row, const std::string& flag, std::optional<std::string> value) {
    switch (row.kind) {
      case Row::same:
      case Row::read_as:
      case Row::read_as_one_of:
        return take_as(row, flag, std::move(value));
      case Row::no_effect:
        break;
      case Row::no_effect_of:
        if (!value) value = next_value(flag);
        check_decides_nothing(row, flag, *value);
        break;
      case Row::no_effect_on_off:
        if (!value && at_ < words_.size() && is_on_or_off(words_[at_])) ++at_;
        break;
      case Row::refused:
        problems_.push_back(fmt::format("{} is not an option: {}", quote(flag), row.says));
        return;
    }
    without_effect_[row.says].push_back(flag);
  }

  static void check_decides_nothing(const Row& row, const std::string& flag, const std::string& value) {
    const std::vector<std::string> allowed = split_text(row.values, ' ');
    const bool is_allowed = *row.values == '\0' || std::any_of(allowed.begin(), allowed.end(), [&](const auto& one) {
      return is_same_value(one, value);
    });
    USER_CHECK(is_allowed, "[{}] must be {}, because {}, but is {}", flag, fmt::join(allowed, " or "), row.says,
               quote(value));
  }

  void take_as(const Row& row, const std::string& flag, std::optional<std::string> value) {
    const std::optional<bool> target = verb_.takes_value(row.says);
    if (!target) {
      const std::string owner = verb_.owner(row.says);
      problems_.push_back(fmt::format("{} is not an option{}", quote(flag),
                                      owner.empty() ? "" : fmt::format(": it is {} of weft {}", row.says, owner)));
      if (!value && at_ < words_.size() && !words_[at_].starts_with('-')) ++at_;
      return;
    }
    if (*target && !value) value = next_value(flag);
    if (value && !translate_value(row, flag, *value)) return;
    if (value) {
      const auto [other, is_first] = given_.try_emplace(row.says, flag, *value);
      USER_CHECK(is_first || other->second.first == flag || other->second.second == *value,
                 "[{}] and {} are one option here, {}, and must be equal, but are {} and {}", other->second.first, flag,
                 row.says, quote(other->second.second), quote(*value));
    }
    if (row.kind != Row::same) read_as_.emplace(flag, row.says);
    result_.emplace_back(row.says);
    if (value) result_.push_back(*value);
  }

  // Returns whether it differs from the default.
  static bool translate_value(const Row& row, const std::string& flag, std::string& value) {
    std::vector<std::string> allowed;
    for (const std::string& pair : split_text(row.values, ' ')) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string::npos) continue;
      allowed.push_back(pair.substr(0, equals));
      if (!is_same_value(allowed.back(), value)) continue;
      value = pair.substr(equals + 1);
      return !value.empty();
    }
    USER_CHECK(row.kind != Row::read_as_one_of, "[{}] must be {}, but is {}", flag, fmt::join(allowed, " or "),
               quote(value));
    return true;
  }

  const std::vector<std::string>& words_;
  const FlagsOfVerb& verb_;
  std::size_t at_ = 0;
  std::vector<std::string> result_, problems_;
  std::map<std::string, std::string> read_as_;                        // Weft's flags by those that were given
  std::map<std::string, std::pair<std::string, std::string>> given_;  // by Weft's flag: the other name and its value
  std::map<std::string, std::vector<std::string>> without_effect_;    // by reason
};

}  // namespace

std::vector<std::string> translate_foreign_flags(const std::vector<std::string>& words, const FlagsOfVerb& verb,
                                                 const NoteFunction& note) {
  Translation translation(words, verb);
  std::vector<std::string> translated = translation.run();
  translation.report(note);
  return translated;
}

void note_without_effect(const std::map<std::string, std::vector<std::string>>& flags_by_reason,
                         const NoteFunction& note) {
  for (const auto& [reason, flags] : flags_by_reason)
    note(fmt::format("[{}] {} accepted but {} no effect: {}", fmt::join(flags, ", "), flags.size() == 1 ? "is" : "are",
                     flags.size() == 1 ? "has" : "have", reason));
}

}  // namespace weft
