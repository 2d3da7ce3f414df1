#pragma once

// Declares the flags and words that may follow a verb on the command line, and the variables that receive them. Names
// have CLI11's syntax: "-n,--max-tokens", or "model,-m,--model" for a word that may also be given without a flag. Only
// flags.cpp includes CLI11, because its header takes longer to compile than any verb.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/sorted_words.h"
#include "base/environment.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weft {

// Whether a flag, named with its dashes, takes a value; nullopt: there is none of that name.
using KnownFlag = std::function<std::optional<bool>(const std::string& flag)>;

struct FlagRules {
  bool required = false;
  bool shows_default = false;              // in the help
  std::vector<std::string> excludes = {};  // flags declared earlier that may not be given together with this one
  bool takes_several = false;              // of a list: the flag may be followed by several values
  char separator = '\0';                   // of such a list: a word that contains it is always a value, as in KEY=VALUE
  bool is_hidden = false;                  // not in the help and not in names()
  bool has_no_value = false;               // of a function that takes one: it gets "true" where the flag is given
  bool may_be_empty = false;  // of one text: "" is a value, and not what a shell makes of a variable that is not set
};

class Flags {
 public:
  Flags(const std::string& name, const std::string& summary);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  // The last of several values counts, unless a comment says otherwise. `target` must outlive parse(). Before parse()
  // it holds the default.
  void option(const std::string& names, std::string& target, const std::string& sentence, const FlagRules& rules = {});
  void option(const std::string& names, double& target, const std::string& sentence, const FlagRules& rules = {});
  void option(const std::string& names, std::int64_t& target, const std::string& sentence, const FlagRules& rules = {});
  void option(const std::string& names, std::uint64_t& target, const std::string& sentence,
              const FlagRules& rules = {});
  // The flag may be given several times.
  void option(const std::string& names, std::vector<std::string>& target, const std::string& sentence,
              const FlagRules& rules = {});
  // parse() calls `take` with the value; `take` may reject it with a UserError.
  void option(const std::string& names, std::function<void(const std::string&)> take, const std::string& sentence,
              const FlagRules& rules = {});
  void flag(const std::string& names, bool& target, const std::string& sentence, const FlagRules& rules = {});

  // Declares a sub-verb, as in `weft bench model`; one of the sub-verbs must be given. parse() calls `chosen` if this
  // one is given.
  Flags& verb(const std::string& name, const std::string& summary, std::function<void()> chosen = {});

  // A flag that the next parsed words do not give takes its value from the environment variable WEFT_ARG_ plus its long
  // name in capitals (WEFT_ARG_TEMP), unless the words give a flag that excludes it. Empty variables count as unset. A
  // flag with several values takes them from words separated by white space. Call this after all flags are declared.
  void take_environment(const EnvironmentLookup& environment);

  // Returns whether the words of the last parse had the flag.
  bool given(const std::string& name) const;

  // Returns the text of --help if the words ask for it, else "". Throws UserError, with the nearest known name, for
  // words that do not fit. `other_names` are flags that were already removed from the words, without dashes. Names of
  // flags may have `_` for `-`.
  std::string parse(const std::vector<std::string>& words, const std::vector<std::string>& other_names = {});

  // The flags of this verb, or of the sub-verb that `words` begin with. Valid as long as this object.
  KnownFlag known_flags(const std::vector<std::string>& words) const;
  // Returns the flags that the help has, with their dashes.
  std::vector<std::string> names() const;
  // In the order of their declaration.
  const std::vector<std::pair<std::string, std::unique_ptr<Flags>>>& verbs() const { return verbs_; }

 private:
  explicit Flags(CLI::App* app);
  template <typename T>
  void declare(const std::string& names, T& target, const std::string& sentence, const FlagRules& rules);
  CLI::Option* obey(CLI::Option* option, const FlagRules& rules);
  void obey_environment();
  std::vector<std::string> names(bool with_hidden) const;
  const Flags* verb_of(const std::vector<std::string>& words) const;
  WordRules word_rules() const;
  void check_verb(const std::vector<std::string>& words) const;
  // `below` is the sub-verb of these words, or nullptr.
  std::string name_with(const Flags* below) const;
  void check_flags(const SortedWords& words, const WordRules& rules, const Flags* below) const;
  [[noreturn]] void refuse(const SortedWords& words, const Flags* below, const std::vector<std::string>& other_names,
                           const std::string& problem) const;

  std::unique_ptr<CLI::App> owned_;  // null in a sub-verb
  CLI::App* app_ = nullptr;
  std::vector<std::pair<std::string, std::unique_ptr<Flags>>> verbs_;
  struct Mirrored {
    CLI::Option* option;
    std::string variable;
    std::vector<std::string> values;
  };
  std::vector<Mirrored> mirrored_;  // flags that the environment sets
  std::vector<ListFlag> lists_;
};

}  // namespace weft
