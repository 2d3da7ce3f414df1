#include <algorithm>
#include <iostream>
#include <new>

#include <fmt/ranges.h>

#include "apps/cli/verb.h"
#include "base/error.h"
#include "base/text.h"
#include "base/version.h"

namespace weft {
namespace {

void print_help(const VerbTable& verbs, std::ostream& out) {
  out << "weft " << kVersion << ": runs language models, compiled\n\nusage: weft VERB MODEL [flags]\n\nverbs:\n";
  for (const auto& [name, verb] : verbs.all()) out << fmt::format("  {:<12} {}\n", name, verb.summary);
  out << "\n'weft VERB --help' says more; 'weft dump options' lists the options that every verb takes.\n";
}

// Takes the options of the table off the words; what is left is the verb's own.
std::vector<std::string> take_options(Options& options, const std::vector<std::string>& words) {
  std::vector<std::string> rest;
  std::span<const std::string> left(words);
  while (!left.empty()) {
    if (left[0] == "--") {  // everything behind it is no flag
      rest.insert(rest.end(), left.begin(), left.end());
      break;
    }
    const std::size_t taken = take_option(options, left);
    if (taken == 0) rest.push_back(left[0]);
    left = left.subspan(std::max<std::size_t>(taken, 1));
  }
  return rest;
}

const CLI::App* find_subcommand(const CLI::App& flags, const std::string& name) {
  for (const CLI::App* subcommand : flags.get_subcommands([](const CLI::App*) { return true; }))
    if (subcommand->get_name() == name) return subcommand;
  return nullptr;
}

void check_subcommand(const CLI::App& flags, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : flags.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(subcommand->get_name());
  if (names.empty()) return;
  const std::string known = fmt::format("{}", fmt::join(names, ", "));
  USER_CHECK(!words.empty(), "[{}] wants one of: {}", flags.get_name(), known);
  USER_CHECK(words[0][0] == '-' || find_subcommand(flags, words[0]) != nullptr,
             "[{}] wants one of {}, but is given {}{}", flags.get_name(), known, quote(words[0]),
             suggestion(words[0], names));
}

// CLI11 names what it did not expect; this adds the nearest flag there is.
[[noreturn]] void fail_usage(const CLI::App& flags, const CLI::Error& error, const std::vector<std::string>& words) {
  const CLI::App* subcommand = words.empty() ? nullptr : find_subcommand(flags, words[0]);
  std::vector<std::string> known = option_names();
  const auto add_names = [&](const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back(name);
      for (const std::string& name : option->get_snames()) known.push_back(name);
    }
  };
  add_names(flags);
  if (subcommand != nullptr) add_names(*subcommand);
  const std::string verb = flags.get_name() + (subcommand == nullptr ? "" : " " + subcommand->get_name());
  for (const std::string& word : words) {
    if (word.size() < 2 || word[0] != '-' || word == "--" || (word[1] >= '0' && word[1] <= '9')) continue;
    const std::size_t begin = word.find_first_not_of('-');
    if (begin == std::string::npos) continue;
    const std::string name =
        word.substr(begin, word.find('=') == std::string::npos ? std::string::npos : word.find('=') - begin);
    // CLI11 reads the value of a flag of one letter behind it: -n32.
    const bool is_short = begin == 1 && std::find(known.begin(), known.end(), name.substr(0, 1)) != known.end();
    if (!is_short && std::find(known.begin(), known.end(), name) == known.end())
      fail_user("[{}] {} is not an option{}", verb, quote(word), suggestion(name, known));
  }
  fail_user("[{}] {}", verb, error.what());
}

int run_verb(const std::string& name, const Verb& verb, std::vector<std::string> words, VerbCall& call) {
  for (std::string& word : words)
    for (const auto& [short_form, long_form] : verb.respelled)
      if (word == short_form) word = long_form;
  CLI::App flags(verb.summary, name);
  flags.set_help_flag("-h,--help", "Print this help.");
  const VerbBody body = verb.setup(flags, call);
  check_subcommand(flags, words);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    flags.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    call.out << flags.help();
    if (verb.takes_options) call.out << "Every option of 'weft dump options' may be given, too.\n";
    return 0;
  } catch (const CLI::Error& error) {
    fail_usage(flags, error, words);
  }
  return body();
}

}  // namespace

VerbTable make_verb_table() {
  VerbTable table;
  for (const VerbEntry& entry : verb_table()) entry.define(table);
  return table;
}

int run_program(const std::vector<std::string>& words, const EnvironmentLookup& environment, std::istream& in,
                std::ostream& out, std::ostream& err) {
  const VerbTable verbs = make_verb_table();
  if (words.empty() || words[0] == "help" || words[0] == "--help" || words[0] == "-h") {
    print_help(verbs, words.empty() ? err : out);
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") {
    out << "weft " << kVersion << "\n";
    return 0;
  }
  const auto found = verbs.all().find(words[0]);
  if (found == verbs.all().end()) {
    std::vector<std::string> names;
    for (const auto& [name, verb] : verbs.all()) names.push_back(name);
    fail_user("[weft] {} is not a verb{}", quote(words[0]), suggestion(words[0], names));
  }
  VerbCall call{.options = {}, .environment = environment, .in = in, .out = out, .err = err};
  apply_environment(call.options, environment);
  const std::vector<std::string> rest = take_options(call.options, {words.begin() + 1, words.end()});
  return run_verb(found->first, found->second, rest, call);
}

int guarded(std::ostream& err, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    err << "weft: " << error.what() << "\n";
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    err << "weft: [memory] the system has no more\n";
    return 4;
  } catch (const std::exception& error) {
    err << "weft: " << error.what() << "\n";
    return 3;
  }
}

}  // namespace weft
