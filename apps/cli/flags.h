#pragma once

// What may stand on the command line behind a verb, and where the words go. Names are written as CLI11 takes them:
// "-n,--max-tokens", or "model,-m,--model" for a word that may also stand without a flag. CLI11 itself is known to
// flags.cpp alone: its header takes longer to compile than any verb.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weft {

struct FlagRules {
  bool required = false;
  bool shows_default = false;  // in the help
  std::string excludes = {};   // a flag declared before, which may not be given together with this one
};

class Flags {
 public:
  Flags(const std::string& name, const std::string& summary);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  // `target` must outlive parse() and holds the default until then.
  void option(const std::string& names, std::string& target, const std::string& sentence, const FlagRules& rules = {});
  void option(const std::string& names, double& target, const std::string& sentence, const FlagRules& rules = {});
  void option(const std::string& names, std::int64_t& target, const std::string& sentence, const FlagRules& rules = {});
  void option(const std::string& names, std::uint64_t& target, const std::string& sentence,
              const FlagRules& rules = {});
  // May be given several times, one value each.
  void option(const std::string& names, std::vector<std::string>& target, const std::string& sentence,
              const FlagRules& rules = {});
  // What is given goes to `take`, which may refuse it with a UserError.
  void option(const std::string& names, std::function<void(const std::string&)> take, const std::string& sentence,
              const FlagRules& rules = {});
  void flag(const std::string& names, bool& target, const std::string& sentence, const FlagRules& rules = {});

  // A verb below this one, as in `weft bench model`; one of them must be given. `chosen` runs when it is.
  Flags& verb(const std::string& name, const std::string& summary, std::function<void()> chosen = {});

  // What WEFT_ARG_ and a flag's long name in capitals say (WEFT_ARG_TEMP) counts where the words that are parsed next
  // give neither the flag nor one that excludes it. Empty variables count as unset. After all flags are declared.
  void take_environment(const EnvironmentLookup& environment);

  // Whether the last parse met the flag.
  bool given(const std::string& name) const;

  // The text of --help when that was asked for, else "". UserError, with the nearest known name, for what does not fit;
  // `other_names` are flags that were taken off before, without dashes.
  std::string parse(const std::vector<std::string>& words, const std::vector<std::string>& other_names = {});

  // Every flag with its dashes.
  std::vector<std::string> names() const;
  // In the order of their declaration.
  const std::vector<std::pair<std::string, std::unique_ptr<Flags>>>& verbs() const { return verbs_; }

 private:
  explicit Flags(CLI::App* app);
  template <typename T>
  void declare(const std::string& names, T& target, const std::string& sentence, const FlagRules& rules);
  void obey(CLI::Option* option, const FlagRules& rules);
  void obey_environment();
  const Flags* verb_of(const std::vector<std::string>& words) const;
  void check_verb(const std::vector<std::string>& words) const;
  [[noreturn]] void refuse(const std::vector<std::string>& words, const std::vector<std::string>& other_names,
                           const std::string& problem) const;

  std::unique_ptr<CLI::App> owned_;  // none in a verb below another
  CLI::App* app_ = nullptr;
  std::vector<std::pair<std::string, std::unique_ptr<Flags>>> verbs_;
  struct Mirrored {
    CLI::Option* option;
    std::string variable;
    std::string value;
  };
  std::vector<Mirrored> mirrored_;  // by the environment
};

}  // namespace weft
