#include <algorithm>
#include <iostream>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "apps/cli/config_file.h"
#include "apps/cli/verb.h"
#include "base/error.h"
#include "base/text.h"
#include "base/version.h"

namespace weft {
namespace {

void print_help(const VerbTable& verbs, std::ostream& out) {
  out << "weft " << kVersion << ": runs language models, compiled\n\nusage: weft VERB MODEL [flags]\n\nverbs:\n";
  for (const auto& [name, verb] : verbs.all()) out << fmt::format("  {:<12} {}\n", name, verb.summary);
  out << "\n'weft VERB --help' prints more; 'weft dump options' lists the options that every verb takes.\n";
}

// -t, -t4, --threads or --threads=4, where -t and --threads are among `flags`.
bool gives_one_of(const std::string& word, const std::vector<std::string>& flags) {
  return std::any_of(flags.begin(), flags.end(), [&](const std::string& flag) {
    const bool is_short = !flag.starts_with("--");
    return word == flag || (word.starts_with(flag) && (is_short ? word[flag.size()] != '-' : word[flag.size()] == '='));
  });
}

// Takes the options of the table off the words; what is left is the verb's own.
std::vector<std::string> take_options(Options& options, const std::vector<std::string>& words,
                                      const std::vector<std::string>& own_options) {
  std::vector<std::string> rest;
  std::span<const std::string> left(words);
  while (!left.empty()) {
    if (left[0] == "--") {  // everything after it is no flag
      rest.insert(rest.end(), left.begin(), left.end());
      break;
    }
    const std::size_t taken = gives_one_of(left[0], own_options) ? 0 : take_option(options, left);
    if (taken == 0) rest.push_back(left[0]);
    left = left.subspan(std::max<std::size_t>(taken, 1));
  }
  return rest;
}

// Prints which requested options have an effect on functions of weft::compile alone.
void print_options_of_functions(const VerbCall& call) {
  for (const auto& [name, reason] : {std::pair("cc.dynamic_shapes_config.type", "no model branches on a size"),
                                     {"check-retrace", "--evaluate-guards is what traces a model again"}})
    if (call.options.requested.contains(name))
      call.err << "weft: [" << name << "] has no effect in this run: " << reason << "\n";
}

int run_verb(const std::string& name, const Verb& verb, std::vector<std::string> words, VerbCall& call) {
  for (std::string& word : words)
    for (const auto& [short_form, long_form] : verb.respelled)
      if (word == short_form || word.starts_with(short_form + "=")) word.replace(0, short_form.size(), long_form);
  Flags flags(name, verb.summary);
  const VerbBody body = verb.setup(flags, call);
  flags.take_environment(call.environment);
  const std::string help = flags.parse(words, option_names());
  if (!help.empty()) {
    call.out << help;
    if (verb.takes_options) call.out << "Every option of 'weft dump options' may be given, too.\n";
    return 0;
  }
  print_options_of_functions(call);
  return body();
}

void add_long_names(const Flags& flags, std::vector<std::string>& names) {
  for (const std::string& name : flags.names())
    if (name.starts_with("--")) names.push_back(name.substr(2));
  for (const auto& [verb, below] : flags.verbs()) add_long_names(*below, names);
}

// A variable may be meant for another verb than the one that runs.
std::vector<std::string> flags_of_all(const VerbTable& verbs, VerbCall& call) {
  std::vector<std::string> names;
  for (const auto& [name, verb] : verbs.all()) {
    Flags flags(name, verb.summary);
    verb.setup(flags, call);
    add_long_names(flags, names);
  }
  return names;
}

// Neither the user's fault nor the program's.
bool is_lack_of_resources(const std::error_code& code) {
  return code == std::errc::resource_unavailable_try_again || code == std::errc::too_many_files_open ||
         code == std::errc::too_many_files_open_in_system || code == std::errc::not_enough_memory;
}

}  // namespace

VerbTable make_verb_table() {
  VerbTable table;
  for (const VerbEntry& entry : verb_table()) entry.define(table);
  return table;
}

int run_program(const std::vector<std::string>& words, const ProgramEnvironment& environment, std::istream& in,
                std::ostream& out, std::ostream& err, Stopwatch watch) {
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
  VerbCall call{
      .options = {}, .environment = environment.lookup, .in = in, .out = out, .err = err, .watch = std::move(watch)};
  if (!environment.names.empty()) check_environment_names(environment.names, flags_of_all(verbs, call));
  apply_environment(call.options, environment.lookup);
  std::vector<std::string> flags(words.begin() + 1, words.end());
  if (found->second.takes_config) flags = with_flags_of_config(std::move(flags));
  const std::vector<std::string> rest = take_options(call.options, flags, found->second.own_options);
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
  } catch (const std::system_error& error) {
    const bool is_lack = is_lack_of_resources(error.code());
    err << "weft: " << (is_lack ? "[system] has no more threads, open files or memory (ulimit -u, -n, -v): " : "")
        << error.what() << "\n";
    return is_lack ? 4 : 3;
  } catch (const std::exception& error) {
    err << "weft: " << error.what() << "\n";
    return 3;
  }
}

}  // namespace weft
