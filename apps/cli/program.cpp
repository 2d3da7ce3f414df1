#include <algorithm>
#include <iostream>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "apps/cli/config_file.h"
#include "apps/cli/foreign_flags.h"
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

// Takes the options of the table off the words; what is left is the verb's own. A flag that the verb has as well is the
// verb's, and the word after a flag with a value is no flag.
std::vector<std::string> take_options(Options& options, const std::vector<std::string>& words,
                                      const KnownFlag& of_verb) {
  std::vector<std::string> rest;
  std::span<const std::string> left(words);
  while (!left.empty()) {
    if (left[0] == "--") {  // everything after it is no flag
      rest.insert(rest.end(), left.begin(), left.end());
      break;
    }
    const std::optional<bool> own = of_verb(left[0].substr(0, left[0].find('=')));
    const std::size_t taken = own ? 0 : take_option(options, left);
    const bool has_next = own.value_or(false) && left[0].find('=') == std::string::npos && left.size() > 1;
    const std::size_t kept = taken > 0 ? 0 : has_next ? 2 : 1;
    rest.insert(rest.end(), left.begin(), left.begin() + static_cast<std::ptrdiff_t>(kept));
    left = left.subspan(taken + kept);
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

// The first verb that declares the flag itself; "" if there is none.
std::string verb_with_flag(const std::string& flag, VerbCall& call) {
  const VerbTable verbs = make_verb_table();
  for (const auto& [name, verb] : verbs.all()) {
    Flags flags(name, verb.summary);
    verb.setup(flags, call);
    if (flags.known_flags({})(flag)) return name;
  }
  return "";
}

int run_verb(const std::string& name, const Verb& verb, const std::vector<std::string>& words, VerbCall& call) {
  Flags flags(name, verb.summary);
  const VerbBody body = verb.setup(flags, call);
  flags.take_environment(call.environment);
  const KnownFlag of_verb = flags.known_flags(words);
  const FlagsOfVerb verb_flags{.name = name,
                               .takes_value =
                                   [&](const std::string& flag) {
                                     const std::optional<bool> own = of_verb(flag);
                                     return own ? own : option_takes_value(flag);
                                   },
                               .owner = [&](const std::string& flag) { return verb_with_flag(flag, call); }};
  const std::vector<std::string> known = translate_foreign_flags(
      words, verb_flags, [&](const std::string& sentence) { call.err << "weft: " << sentence << "\n"; });
  const std::vector<std::string> own = take_options(call.options, known, of_verb);
  const std::string help = flags.parse(own, option_names());
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

// Commands of other programs, and what does the same.
constexpr std::pair<std::string_view, std::string_view> kOtherVerbs[] = {
    {"generate", "weft chat MODEL -p TEXT, or weft complete without the chat template"},
    {"run", "weft chat MODEL"},
    {"perplexity", "weft logits MODEL --perplexity -f FILE"},
    {"convert", "weft quantize MODEL --format FORMAT -o FOLDER"},
    {"pull", "hf download USER/REPO, and USER/REPO as MODEL"},
    {"download", "hf download USER/REPO, and USER/REPO as MODEL"},
    {"list", "weft info"},
    {"collect-env", "weft info"},
    {"server", "weft serve MODEL"},
    {"score", "weft serve MODEL, and POST /v1/score"}};

[[noreturn]] void fail_unknown_verb(const std::string& word, const VerbTable& verbs) {
  std::vector<std::string> names;
  for (const auto& [name, verb] : verbs.all()) names.push_back(name);
  USER_CHECK(word[0] != '-', "[weft] wanted a verb first, as in weft complete -m MODEL -p TEXT, but {} is given",
             quote(word));
  for (const auto& [other, here] : kOtherVerbs)
    USER_CHECK(word != other, "[weft] {} is not a verb: use {}", quote(word), here);
  fail_user("[weft] {} is not a verb{}", quote(word), suggestion(word, names));
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
  if (words[0] == "--version" || words[0] == "-v") {
    out << "weft " << kVersion << "\n";
    return 0;
  }
  const auto found = verbs.all().find(words[0]);
  if (found == verbs.all().end()) fail_unknown_verb(words[0], verbs);
  VerbCall call{
      .options = {}, .environment = environment.lookup, .in = in, .out = out, .err = err, .watch = std::move(watch)};
  if (!environment.names.empty()) check_environment_names(environment.names, flags_of_all(verbs, call));
  apply_environment(call.options, environment.lookup);
  std::vector<std::string> flags(words.begin() + 1, words.end());
  if (found->second.takes_config) flags = with_flags_of_config(std::move(flags));
  return run_verb(found->first, found->second, flags, call);
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
