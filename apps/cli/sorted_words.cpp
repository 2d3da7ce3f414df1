#include "apps/cli/sorted_words.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

// A word such as -5 is a number, unless there is a flag -5.
bool begins_flag(const std::string& word, const WordRules& rules) {
  if (word.size() < 2 || word[0] != '-') return false;
  return word[1] < '0' || word[1] > '9' || rules.takes_value(word.substr(0, 2)).has_value();
}

bool is_long_flag(const std::string& word) { return word.starts_with("--"); }

// The name of a flag without a value that is in the same word: --name=value, -n32.
std::string name_in(const std::string& word) {
  return is_long_flag(word) ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

const ListFlag* find_list(const std::string& name, const WordRules& rules) {
  const auto found =
      std::find_if(rules.lists.begin(), rules.lists.end(), [&](const ListFlag& list) { return list.name == name; });
  return found == rules.lists.end() ? nullptr : &*found;
}

}  // namespace

std::string known_spelling(const std::string& name, const WordRules& rules) {
  if (!is_long_flag(name) || rules.takes_value(name)) return name;
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return rules.takes_value(dashed) ? dashed : name;
}

SortedWords::SortedWords(std::span<const std::string> words, const WordRules& rules)
    : reads_model_(!rules.model_flags.empty()) {
  std::string list;
  bool has_flags = true;  // until `--`
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (has_flags && words[i] == "--") {
      has_flags = false;
      list.clear();
      words_.push_back({Kind::flag, words[i]});
    } else if (!has_flags || !begins_flag(words[i], rules)) {
      words_.push_back({Kind::free, words[i], list});
    } else {
      const bool takes_next = add_flag(words[i], rules);
      const std::string name = name_in(words_.back().text);
      list = takes_next && find_list(name, rules) != nullptr ? name : "";
      if (!takes_next || i + 1 == words.size()) continue;
      words_.push_back({Kind::value, words[++i]});
      if (std::find(rules.model_flags.begin(), rules.model_flags.end(), name) != rules.model_flags.end())
        given_models_.push_back(words[i]);
    }
  }
  choose_model(rules);
}

bool SortedWords::add_flag(const std::string& word, const WordRules& rules) {
  const std::string name = known_spelling(name_in(word), rules);
  const std::string rest = word.substr(name.size());  // both spellings have the same length
  words_.push_back({Kind::flag, name + rest});
  // CLI11 reads `--name= value` as `--name value`.
  const bool has_value = !rest.empty() && !(is_long_flag(word) && rest == "=");
  if (has_value && std::find(rules.model_flags.begin(), rules.model_flags.end(), name) != rules.model_flags.end())
    given_models_.push_back(is_long_flag(word) ? rest.substr(1) : rest);
  return !has_value && rules.takes_value(name).value_or(false);
}

// Words that follow a list may be its values. If no other word is MODEL, the last one of them is.
void SortedWords::choose_model(const WordRules& rules) {
  bool has_model = !reads_model_ || !given_models_.empty();
  Word* last = nullptr;
  for (Word& word : words_) {
    if (word.kind != Kind::free) continue;
    const ListFlag* list = find_list(word.list, rules);
    if (list == nullptr) {
      has_model = true;
    } else if (list->separator == '\0' || word.text.find(list->separator) == std::string::npos) {
      last = &word;
    }
  }
  if (!has_model && last != nullptr) last->list.clear();
}

std::vector<std::string> SortedWords::spread() const {
  std::vector<std::string> spread;
  for (const Word& word : words_) {
    if (!word.list.empty()) spread.push_back(word.list);
    spread.push_back(word.text);
  }
  return spread;
}

std::vector<std::string> SortedWords::flags() const {
  std::vector<std::string> flags;
  for (const Word& word : words_)
    if (word.kind == Kind::flag && word.text != "--") flags.push_back(word.text);
  return flags;
}

void SortedWords::check_one_model() const {
  if (!reads_model_) return;
  std::vector<std::string> models;
  for (const Word& word : words_)
    if (word.kind == Kind::free && word.list.empty()) models.push_back(word.text);
  if (models.empty()) return;  // of several flags the last one counts
  if (!given_models_.empty()) models.push_back(given_models_.back());
  for (const std::string& model : models) {
    const bool is_switch = model == "true" || model == "false";
    USER_CHECK(model == models[0], "[model] must be given once, but is {} and {}{}", quote(models[0], 1000),
               quote(model, 1000), is_switch ? " (a flag without a value takes it as --flag=" + model + ")" : "");
  }
}

}  // namespace weft
