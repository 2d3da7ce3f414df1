#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "apps/cli/verb.h"
#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

// What may follow a verb: its own flags, those of its subcommands, the options of the table.
struct VerbWords {
  std::string name;
  std::string summary;
  std::vector<std::string> subcommands;
  std::vector<std::string> flags;
};

std::vector<std::string> table_flags() {
  std::vector<std::string> flags;
  for (const std::string& name : option_names()) {
    if (name.starts_with("cc.")) {
      flags.push_back("-" + name);
    } else {
      flags.push_back(name.size() <= 2 ? "-" + name : "--" + name);
    }
  }
  return flags;
}

std::vector<VerbWords> all_words(VerbCall& call) {
  std::vector<VerbWords> all;
  const VerbTable verbs = make_verb_table();
  for (const auto& [name, verb] : verbs.all()) {
    Flags own(name, verb.summary);
    verb.setup(own, call);
    VerbWords words{.name = name, .summary = verb.summary};
    std::set<std::string> flags;
    const auto add = [&](const Flags& more) {
      for (const std::string& flag : more.names()) flags.insert(flag);
    };
    add(own);
    for (const auto& [below_name, below] : own.verbs()) {
      words.subcommands.push_back(below_name);
      add(*below);
    }
    if (verb.takes_options)
      for (const std::string& flag : table_flags()) flags.insert(flag);
    words.flags.assign(flags.begin(), flags.end());
    all.push_back(std::move(words));
  }
  return all;
}

std::string bash_script(const std::vector<VerbWords>& verbs) {
  std::vector<std::string> names;
  std::string cases;
  for (const VerbWords& verb : verbs) {
    names.push_back(verb.name);
    std::vector<std::string> words = verb.subcommands;
    words.insert(words.end(), verb.flags.begin(), verb.flags.end());
    cases += fmt::format("    {}) words='{}' ;;\n", verb.name, fmt::join(words, " "));
  }
  return fmt::format(
      "_weft() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} words\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '{}' -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
      "}}\n"
      "complete -o filenames -F _weft weft\n",
      fmt::join(names, " "), cases);
}

// In single quotes of zsh and fish alike: no text of the tables holds a quote, and a colon would end a zsh word.
std::string description(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '`');
  std::replace(text.begin(), text.end(), ':', ',');
  return text;
}

std::string zsh_script(const std::vector<VerbWords>& verbs) {
  std::string described, cases;
  for (const VerbWords& verb : verbs) {
    described += fmt::format("    '{}:{}'\n", verb.name, description(verb.summary));
    std::vector<std::string> words = verb.subcommands;
    words.insert(words.end(), verb.flags.begin(), verb.flags.end());
    cases += fmt::format("    {}) words_of_verb=({}) ;;\n", verb.name, fmt::join(words, " "));
  }
  return fmt::format(
      "#compdef weft\n"
      "_weft() {{\n"
      "  local -a verbs words_of_verb\n"
      "  verbs=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe 'verb' verbs\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n{}"
      "  esac\n"
      "  compadd -- $words_of_verb\n"
      "  _files\n"
      "}}\n"
      "_weft \"$@\"\n",
      described, cases);
}

std::string fish_script(const std::vector<VerbWords>& verbs) {
  std::string script;
  for (const VerbWords& verb : verbs) {
    script += fmt::format("complete -c weft -n '__fish_use_subcommand' -f -a {} -d '{}'\n", verb.name,
                          description(verb.summary));
    const std::string condition = fmt::format("-n '__fish_seen_subcommand_from {}'", verb.name);
    for (const std::string& word : verb.subcommands)
      script += fmt::format("complete -c weft {} -a {}\n", condition, word);
    for (const std::string& flag : verb.flags) {
      const bool is_long = flag.starts_with("--");
      const char* kind = is_long ? "-l" : flag.size() == 2 ? "-s" : "-o";
      script += fmt::format("complete -c weft {} {} {}\n", condition, kind, flag.substr(is_long ? 2 : 1));
    }
  }
  return script;
}

int print_script(const std::string& shell, VerbCall& call) {
  const std::vector<std::string> shells{"bash", "zsh", "fish"};
  USER_CHECK(std::find(shells.begin(), shells.end(), shell) != shells.end(),
             "[completion] must be for bash, zsh or fish, but is for {}{}", quote(shell), suggestion(shell, shells));
  const std::vector<VerbWords> words = all_words(call);
  call.out << (shell == "bash" ? bash_script(words) : shell == "zsh" ? zsh_script(words) : fish_script(words));
  return 0;
}

}  // namespace
}  // namespace weft

VERB(completion) {
  verbs.add("completion", {"Print a completion script for a shell.",
                           [](Flags& flags, VerbCall& call) -> VerbBody {
                             auto shell = std::make_shared<std::string>();
                             flags.option("shell", *shell, "bash, zsh or fish.", {.required = true});
                             return [shell, &call] { return print_script(*shell, call); };
                           },
                           false});
}
