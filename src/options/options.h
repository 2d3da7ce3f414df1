#pragma once

// The options table and its values. A row of options.def makes the field, the flag, the environment mirror, the line in
// `weft dump options` and, if it changes generated code, the part of the cache key.
//
// Options are set by name from several sources (the environment first, then the command line); the last one wins, and
// each requested value is stored with its source. Functions that refuse a name or a value throw UserError; the message
// names the option, the allowed values and the source of the value.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/environment.h"

namespace weft {

using OptionalFlag = std::optional<bool>;  // nullopt: other options decide
using Counts = std::vector<std::int64_t>;
using Words = std::vector<std::string>;
using Priorities = std::map<std::string, Words>;  // op -> providers, first choice first

// As the first name of a priority list: fusions may still replace the op by a fused op, which has a list of its own.
// Without it, no fusion takes an op that has a list.
inline constexpr std::string_view kMayBeFused = "fused";

struct RequestedOption {
  std::string text;        // as given
  std::string source;      // "command line", "WEFT_ARG_DTYPE", ...
  std::string alias = {};  // the other name by which it was given; "" for its own
  friend bool operator==(const RequestedOption&, const RequestedOption&) = default;
};

// These macros keep the field of a row if its effect belongs to the struct below.
#define WEFT_CODE_OPTION_code(...) __VA_ARGS__
#define WEFT_CODE_OPTION_run(...)
#define WEFT_CODE_OPTION_none(...)
#define WEFT_OTHER_OPTION_code(...)
#define WEFT_OTHER_OPTION_run(...) __VA_ARGS__
#define WEFT_OTHER_OPTION_none(...) __VA_ARGS__

// The options that change generated code. All of them are part of the cache keys. Code that transforms a graph gets
// only these, so it cannot read an option that is in no key.
struct CodeOptions {
#define OPTION(member, type, default_value, name, limits, effect, ...) \
  WEFT_CODE_OPTION_##effect(type member = default_value;)
#define OPTION_ALIAS(...)
#include "options/options.def"
#undef OPTION
#undef OPTION_ALIAS

  friend bool operator==(const CodeOptions&, const CodeOptions&) = default;
};

struct Options : CodeOptions {
#define OPTION(member, type, default_value, name, limits, effect, ...) \
  WEFT_OTHER_OPTION_##effect(type member = default_value;)
#define OPTION_ALIAS(...)
#include "options/options.def"
#undef OPTION
#undef OPTION_ALIAS

  // The requested options by name (for ir-op-priority with the op: "ir-op-priority.rms_norm").
  std::map<std::string, RequestedOption> requested;

  friend bool operator==(const Options&, const Options&) = default;
};

#undef WEFT_CODE_OPTION_code
#undef WEFT_CODE_OPTION_run
#undef WEFT_CODE_OPTION_none
#undef WEFT_OTHER_OPTION_code
#undef WEFT_OTHER_OPTION_run
#undef WEFT_OTHER_OPTION_none

enum class OptionEffect { code, run, none };

enum class OptionActs { always, compiled, generated, sized, captured };

enum class OptionCheck {
  any,
  any_json,
  between,
  one_of,
  custom_op_words,
  device_name,
  size_words,
  repeatable,
  scaled_paths,
  named_paths
};

struct OptionLimits {
  OptionCheck check = OptionCheck::any;
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::string_view words;  // "word word|alias|alias ..."
};

using OptionMember = std::variant<bool Options::*, OptionalFlag Options::*, std::int64_t Options::*,
                                  std::string Options::*, Counts Options::*, Words Options::*, Priorities Options::*>;

struct OptionRow {
  std::string_view name;
  OptionMember member;
  OptionLimits limits;
  OptionEffect effect;
  OptionActs acts;
  std::string_view environment;  // empty: only the mirror
  std::string_view sentence;
};

// In the order of options.def.
std::span<const OptionRow> option_table();

// The row for a name in any user spelling: with or without leading dashes, `_` for `-`, `compilation-config.` for
// `cc.`, or an alias. nullptr if there is none. A name of ir-op-priority may end in `.op`.
const OptionRow* find_option(std::string_view name);

// The alias as it is usually spelled if the name is one; "" otherwise.
std::string_view option_alias(std::string_view name);

// Whether the option takes no value (`--enforce-eager`); `--no-enforce-eager` is its opposite.
bool is_flag(const OptionRow& row);

// Whether a flag of the command line, named with its dashes, sets an option from a value: --threads, but neither
// --enforce-eager nor -O2. nullopt: no option has the name.
std::optional<bool> option_takes_value(std::string_view flag);

// Names and aliases of all options, ignored ones too, for suggestions and completion.
std::vector<std::string> option_names();

// Sets one option from text: numbers with suffixes (4k), lists as `a,b` or a JSON list, flags as true/false/1/0 or
// empty for true, groups such as `cc` and `cc.pass_config` as a JSON object. A `+` after the name of a list adds to the
// items that were requested before. The error for an unknown name suggests the nearest known one.
void set_option(Options& options, std::string_view name, std::string_view text, const std::string& source);

// Sets every option of an object, groups as nested objects; null is the default. The text is JSON, or a Python value as
// vLLM's log prints its configs. `group` is put before each name: "cc" for --compilation-config. Unknown and repeated
// keys are errors; one error has all unknown keys and all wrong values. After an error, no option has changed.
void apply_json(Options& options, std::string_view json, const std::string& source, std::string_view group = "");

// Sets options from the environment: first the variables named in the table (WEFT_LOGS), then WEFT_ARG_ with the
// option's name in capitals and `_` for `-` and `.` (WEFT_ARG_MAX_MODEL_LEN, WEFT_ARG_CC_MODE). Empty variables count
// as unset.
void apply_environment(Options& options, const EnvironmentLookup& environment);

// The mirror of an option's name: WEFT_ARG_MAX_MODEL_LEN for max-model-len.
std::string environment_mirror(std::string_view name);

// UserError for names that begin with WEFT_ARG_ but mirror no option and none of `flags`, which are the other flags of
// the command line, without dashes. `names` is process_environment_names("WEFT_ARG_").
void check_environment_names(std::span<const std::string> names, std::span<const std::string> flags);

// Sets the option at the start of a command line and returns the number of words that it consumed; 0 if the first word
// is not an option of this table. Accepts --name VALUE, --name=VALUE, -cc.name=VALUE, -cc.list+=VALUE, -cc '{json}',
// -cc FILE, -O2, --flag, --no-flag.
std::size_t take_option(Options& options, std::span<const std::string> words);

}  // namespace weft
