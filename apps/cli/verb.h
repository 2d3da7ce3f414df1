#pragma once

// One file of apps/cli/verbs for each verb of the program. A verb declares its own flags; every flag of the options
// table (base/options.def) is taken off the command line before and stands in `options`.

#include <functional>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "base/environment.h"
#include "base/options.h"
#include "base/stopwatch.h"

namespace weft {

// What a verb may use of the world.
struct VerbCall {
  Options options;
  EnvironmentLookup environment;
  std::istream& in;
  std::ostream& out;  // results
  std::ostream& err;  // everything else
  Stopwatch watch;    // began with the process
};

// Runs after the flags were read; gives the exit status.
using VerbBody = std::function<int()>;

struct Verb {
  std::string summary;
  // Declares the flags and gives the body, which owns what the flags were read into.
  std::function<VerbBody(Flags& flags, VerbCall& call)> setup;
  bool takes_options = true;  // whether flags of the options table mean something to it
  // Flags of the options table that the verb declares itself, as it reads more from them: {"-t", "--threads"}.
  std::vector<std::string> own_options = {};
  // Flags of one dash and several letters, as Flags spells them: {"-pg", "--pg"}.
  std::vector<std::pair<std::string, std::string>> respelled = {};
};

class VerbTable {
 public:
  void add(const std::string& name, Verb verb) { verbs_[name] = std::move(verb); }
  const std::map<std::string, Verb>& all() const { return verbs_; }

 private:
  std::map<std::string, Verb> verbs_;
};

// One row per file, made by the build.
struct VerbEntry {
  const char* name;
  void (*define)(VerbTable&);
};
std::span<const VerbEntry> verb_table();
VerbTable make_verb_table();

struct ProgramEnvironment {
  EnvironmentLookup lookup;
  std::vector<std::string> names;  // of its variables; those of WEFT_ARG_ are enough
};

// The whole program but for the translation of exceptions: runs the verb that the words name. `watch` began with the
// process.
int run_program(const std::vector<std::string>& words, const ProgramEnvironment& environment, std::istream& in,
                std::ostream& out, std::ostream& err, Stopwatch watch = {});

// Runs `body` and turns an exception into a message on `err` and its exit status.
int guarded(std::ostream& err, const std::function<int()>& body);

}  // namespace weft

// Defines the verb of apps/cli/verbs/<name>.cpp.
#define VERB(name)                           \
  namespace weft {                           \
  void define_verb_##name(VerbTable& verbs); \
  }                                          \
  void weft::define_verb_##name(VerbTable& verbs)
