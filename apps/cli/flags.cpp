#include "apps/cli/flags.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "options/options.h"

namespace weft {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

Flags::Flags(const std::string& name, const std::string& summary)
    : owned_(std::make_unique<CLI::App>(summary, name)), app_(owned_.get()) {
  app_->set_help_flag("-h,--help", "Print this help.");
}

Flags::Flags(CLI::App* app) : app_(app) {}

Flags::~Flags() = default;

CLI::Option* Flags::obey(CLI::Option* option, const FlagRules& rules) {
  option->required(rules.required);
  if (rules.shows_default) option->capture_default_str();
  if (rules.is_hidden) option->group("");
  for (const std::string& other : rules.excludes) option->excludes(app_->get_option(other));
  return option;
}

// Numbers are read as base/text.h reads them: CLI11 takes hexadecimal ones and no text at all, and wraps what does not
// fit.
template <typename T>
void Flags::declare(const std::string& names, T& target, const std::string& sentence, const FlagRules& rules) {
  const std::string first = names.substr(0, names.find(','));
  const auto take = [&target, first, may_be_empty = rules.may_be_empty](const std::string& text) {
    if constexpr (std::is_same_v<T, std::string>) {
      USER_CHECK(may_be_empty || !text.empty(), "[{}] wanted a value, but is {}", first, quote(text));
      target = text;
    } else if constexpr (std::is_floating_point_v<T>) {
      target = decimal_number(text, first);
    } else {
      const std::int64_t value = human_integer(text, first);
      USER_CHECK(std::is_signed_v<T> || value >= 0, "[{}] must be at least 0, but is {}", first, value);
      target = static_cast<T>(value);
    }
  };
  CLI::Option* option = app_->add_option_function<std::string>(names, take, sentence);
  obey(option, rules)->take_last();
  if (rules.shows_default) option->default_str(fmt::format("{}", target));
}

void Flags::option(const std::string& names, std::string& target, const std::string& sentence, const FlagRules& rules) {
  declare(names, target, sentence, rules);
}

void Flags::option(const std::string& names, double& target, const std::string& sentence, const FlagRules& rules) {
  declare(names, target, sentence, rules);
}

void Flags::option(const std::string& names, std::int64_t& target, const std::string& sentence,
                   const FlagRules& rules) {
  declare(names, target, sentence, rules);
}

void Flags::option(const std::string& names, std::uint64_t& target, const std::string& sentence,
                   const FlagRules& rules) {
  declare(names, target, sentence, rules);
}

void Flags::option(const std::string& names, std::vector<std::string>& target, const std::string& sentence,
                   const FlagRules& rules) {
  CLI::Option* option = app_->add_option(names, target, sentence);
  obey(option, rules);
  option->take_all()->expected(1)->allow_extra_args(false);
  if (rules.takes_several) lists_.push_back({names, rules.separator});
}

void Flags::option(const std::string& names, std::function<void(const std::string&)> take, const std::string& sentence,
                   const FlagRules& rules) {
  CLI::Option* option = app_->add_option_function<std::string>(names, std::move(take), sentence);
  if (rules.has_no_value) option->expected(0);
  obey(option, rules)->take_last();
}

void Flags::flag(const std::string& names, bool& target, const std::string& sentence, const FlagRules& rules) {
  obey(app_->add_flag(names, target, sentence), rules);
}

Flags& Flags::verb(const std::string& name, const std::string& summary, std::function<void()> chosen) {
  app_->require_subcommand(1);
  CLI::App* below = app_->add_subcommand(name, summary);
  if (chosen) below->final_callback(std::move(chosen));
  verbs_.emplace_back(name, std::unique_ptr<Flags>(new Flags(below)));
  return *verbs_.back().second;
}

bool Flags::given(const std::string& name) const { return app_->get_option(name)->count() != 0; }

void Flags::take_environment(const EnvironmentLookup& environment) {
  for (CLI::Option* option : app_->get_options()) {
    if (option == app_->get_help_ptr()) continue;
    for (const std::string& name : option->get_lnames()) {
      const std::string variable = environment_mirror(name);
      const std::optional<std::string> value = environment(variable);
      if (!value || value->empty()) continue;
      const bool is_list =
          std::any_of(lists_.begin(), lists_.end(), [&](const ListFlag& list) { return list.name == "--" + name; });
      std::vector<std::string> values = is_list ? words_of(*value) : std::vector<std::string>{*value};
      if (values.empty()) continue;
      mirrored_.push_back({option, variable, std::move(values)});
      option->required(false);
      break;
    }
  }
  for (const auto& [name, below] : verbs_) below->take_environment(environment);
}

void Flags::obey_environment() {
  for (const auto& [option, variable, values] : mirrored_) {
    const auto& excluded = option->get_excludes();
    if (option->count() != 0 ||
        std::any_of(excluded.begin(), excluded.end(), [](const CLI::Option* other) { return other->count() != 0; }))
      continue;
    try {
      for (const std::string& value : values) option->add_result(value);
      option->run_callback();
    } catch (const CLI::Error& error) {
      fail_user("[{}] {}", variable, error.what());
    } catch (const UserError& error) {
      fail_user("[{}] {}", variable, error.what());
    }
  }
  for (const auto& [name, below] : verbs_)
    if (below->app_->parsed()) below->obey_environment();
}

WordRules Flags::word_rules() const {
  const CLI::App* app = app_;
  WordRules rules{.takes_value = [app](const std::string& flag) -> std::optional<bool> {
                    const CLI::Option* option = app->get_option_no_throw(flag);
                    if (option == nullptr) return std::nullopt;
                    return option->get_items_expected_min() > 0;
                  },
                  .lists = lists_,
                  .model_flags = {}};
  const auto without_flag =
      app->get_options([](const CLI::Option* option) { return static_cast<bool>(option->get_positional()); });
  if (without_flag.size() != 1) return rules;
  for (const std::string& name : without_flag[0]->get_snames()) rules.model_flags.push_back("-" + name);
  for (const std::string& name : without_flag[0]->get_lnames()) rules.model_flags.push_back("--" + name);
  return rules;
}

KnownFlag Flags::known_flags(const std::vector<std::string>& words) const {
  const Flags* below = verb_of(words);
  return [rules = (below == nullptr ? this : below)->word_rules()](const std::string& flag) {
    return rules.takes_value(known_spelling(flag, rules));
  };
}

// Refuses letters after a flag of one letter. CLI11 would read them as more flags of one letter, or as its value, and
// the message would be about something else; -n32 is -n 32.
void Flags::check_flags(const SortedWords& words, const WordRules& rules, const Flags* below) const {
  for (const std::string& word : words.flags()) {
    const std::string name = word.substr(0, word.find('='));
    const bool is_group =
        !word.starts_with("--") && name.size() > 2 && std::isalpha(static_cast<unsigned char>(name[2]));
    if (is_group && !rules.takes_value(name) && rules.takes_value(name.substr(0, 2)))
      fail_user("[{}] {} is not an option", name_with(below), quote(word));
  }
}

std::string Flags::parse(const std::vector<std::string>& words, const std::vector<std::string>& other_names) {
  check_verb(words);
  const Flags* below = verb_of(words);
  const std::span<const std::string> all(words);
  const WordRules rules = (below == nullptr ? this : below)->word_rules();
  const SortedWords sorted(all.subspan(below == nullptr ? 0 : 1), rules);
  check_flags(sorted, rules, below);
  try {
    std::vector<std::string> reversed = sorted.spread();
    if (below != nullptr) reversed.insert(reversed.begin(), words[0]);
    std::reverse(reversed.begin(), reversed.end());
    app_->parse(reversed);
    sorted.check_one_model();
    obey_environment();
  } catch (const CLI::CallForHelp&) {
    return app_->help();
  } catch (const CLI::Error& error) {
    std::string text = error.what();
    if (text.ends_with(' ')) text += quote("");  // the library prints an empty word as it is
    refuse(sorted, below, other_names, text);
  }
  return "";
}

std::vector<std::string> Flags::names() const { return names(false); }

std::vector<std::string> Flags::names(bool with_hidden) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : static_cast<const CLI::App*>(app_)->get_options()) {
    if (option->get_group().empty() && !with_hidden) continue;
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

const Flags* Flags::verb_of(const std::vector<std::string>& words) const {
  for (const auto& [name, below] : verbs_)
    if (!words.empty() && words[0] == name) return below.get();
  return nullptr;
}

std::string Flags::name_with(const Flags* below) const {
  return app_->get_name() + (below == nullptr ? "" : " " + below->app_->get_name());
}

void Flags::check_verb(const std::vector<std::string>& words) const {
  if (verbs_.empty()) return;
  std::vector<std::string> known;
  for (const auto& [name, below] : verbs_) known.push_back(name);
  USER_CHECK(!words.empty(), "[{}] wants one of: {}", app_->get_name(), fmt::join(known, ", "));
  USER_CHECK(words[0][0] == '-' || verb_of(words) != nullptr, "[{}] wants one of {}, but is given {}{}",
             app_->get_name(), fmt::join(known, ", "), quote(words[0]), suggestion(words[0], known));
}

// CLI11 names what it did not expect; this adds the nearest flag there is.
void Flags::refuse(const SortedWords& words, const Flags* below, const std::vector<std::string>& other_names,
                   const std::string& problem) const {
  std::vector<std::string> known = other_names;
  for (const Flags* flags : {this, below})
    if (flags != nullptr)
      for (const std::string& name : flags->names(true)) known.push_back(name.substr(name.find_first_not_of('-')));
  const std::string verb = name_with(below);
  std::vector<std::string> unknown;
  for (const std::string& word : words.flags()) {
    const std::size_t begin = word.find_first_not_of('-');
    if (begin == std::string::npos) continue;
    const std::string name =
        word.substr(begin, word.find('=') == std::string::npos ? std::string::npos : word.find('=') - begin);
    // CLI11 accepts the value of a flag of one letter directly after it: -n32.
    const bool is_short = begin == 1 && std::find(known.begin(), known.end(), name.substr(0, 1)) != known.end();
    if (!is_short && std::find(known.begin(), known.end(), name) == known.end())
      unknown.push_back(fmt::format("{} is not an option{}", quote(word), suggestion(name, known)));
  }
  USER_CHECK(unknown.empty(), "[{}] {}", verb, fmt::join(unknown, "; "));
  words.check_one_model();
  fail_user("[{}] {}", verb, problem);
}

}  // namespace weft
