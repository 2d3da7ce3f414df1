#pragma once

// The words after a verb, sorted as CLI11 will read them: flags, their values, and words without a flag. This decides
// which words after a flag with several values are values, and which one is MODEL.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

// A flag that several values may follow.
struct ListFlag {
  std::string name;       // with its dashes
  char separator = '\0';  // a word that contains it is always a value, as in KEY=VALUE; '\0': there is none
};

struct WordRules {
  // Whether the flag, named with its dashes, takes a value; nullopt if there is no such flag.
  std::function<std::optional<bool>(const std::string& flag)> takes_value;
  std::vector<ListFlag> lists;
  std::vector<std::string> model_flags;  // -m, --model; empty if words without a flag are not MODEL alone
};

// The flag with `-` for `_` if it exists in that spelling alone: vLLM takes both in each long flag.
std::string known_spelling(const std::string& flag, const WordRules& rules);

class SortedWords {
 public:
  SortedWords(std::span<const std::string> words, const WordRules& rules);

  // With a flag in front of each value: `--name a b` as `--name a --name b`.
  std::vector<std::string> spread() const;
  // The words that are flags, with `-` for `_` in names that exist in that spelling.
  std::vector<std::string> flags() const;
  // Throws UserError if a word without a flag is MODEL and another word is another MODEL.
  void check_one_model() const;

 private:
  enum class Kind : std::uint8_t { flag, value, free };
  struct Word {
    Kind kind;
    std::string text;
    std::string list = {};  // of a free word: the flag whose values it continues
  };

  // Returns whether the next word is the value of this one.
  bool add_flag(const std::string& word, const WordRules& rules);
  void choose_model(const WordRules& rules);

  std::vector<Word> words_;
  std::vector<std::string> given_models_;  // values of the flags of MODEL
  bool reads_model_ = false;               // free words are MODEL
};

}  // namespace weft
