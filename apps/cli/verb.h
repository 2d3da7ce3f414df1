#pragma once

// Each verb of the program has one file in apps/cli/verbs. A verb declares its own flags. Flags of the options table
// (options/options.def) are removed from the command line first and stored in `options`.

#include <functional>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "base/environment.h"
#include "base/stopwatch.h"
#include "options/options.h"

namespace weft {

// The inputs and outputs of a verb.
struct VerbCall {
  Options options;
  EnvironmentLookup environment;
  std::istream& in;
  std::ostream& out;  // results
  std::ostream& err;  // everything else
  Stopwatch watch;    // began with the process
};

// Runs after the flags are parsed and returns the exit status.
using VerbBody = std::function<int()>;

struct Verb {
  std::string summary;
  // Declares the flags and returns the body. The body owns the variables that receive the flags.
  std::function<VerbBody(Flags& flags, VerbCall& call)> setup;
  bool takes_config = false;  // --config FILE has flags
  bool takes_options = true;  // whether flags of the options table have an effect
};

class VerbTable {
 public:
  void add(const std::string& name, Verb verb) { verbs_[name] = std::move(verb); }
  const std::map<std::string, Verb>& all() const { return verbs_; }

 private:
  std::map<std::string, Verb> verbs_;
};

// The build makes one row for each file.
struct VerbEntry {
  const char* name;
  void (*define)(VerbTable&);
};
std::span<const VerbEntry> verb_table();
VerbTable make_verb_table();

struct ProgramEnvironment {
  EnvironmentLookup lookup;
  std::vector<std::string> names;  // names of its variables; those with WEFT_ARG_ suffice
};

// Runs the verb that the words name. This is the whole program except the translation of exceptions. `watch` began with
// the process.
int run_program(const std::vector<std::string>& words, const ProgramEnvironment& environment, std::istream& in,
                std::ostream& out, std::ostream& err, Stopwatch watch = {});

// Runs `body`. An exception becomes a message on `err` and an exit status.
int guarded(std::ostream& err, const std::function<int()>& body);

}  // namespace weft

// Defines the verb of apps/cli/verbs/<name>.cpp.
#define VERB(name)                           \
  namespace weft {                           \
  void define_verb_##name(VerbTable& verbs); \
  }                                          \
  void weft::define_verb_##name(VerbTable& verbs)
