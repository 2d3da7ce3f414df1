#pragma once

// The functions for setting options that options.cpp, options_json.cpp and option_value.cpp share; callers use
// options/options.h. UserErrors from here do not name the source of the value; set_option and apply_json add it.

#include <string>
#include <string_view>
#include <vector>

#include "options/options.h"

namespace weft {

// One case per type of an OptionMember, for std::visit.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Implement set_option and apply_json.
void set_from_text(Options& options, std::string_view name, std::string_view text, const std::string& source);
void set_from_json(Options& options, std::string_view json, const std::string& source, std::string_view group);

// The option group with this name, such as "cc.pass_config"; empty if there is none.
std::string_view option_group(std::string_view name);

// The op in a name like ir-op-priority.rms_norm; empty if there is none.
std::string_view priority_op(std::string_view name);

// The name in the form in which names are compared: without leading dashes, `cc` for `compilation-config`, dashes for
// underscores.
std::string plain_spelling(std::string_view name);

// The name in quotes, with the nearest known name if there is one.
std::string unknown_option_text(std::string_view name);
[[noreturn]] void fail_unknown_option(std::string_view name);

// The items of a list: `a,b` or a JSON list of strings and whole numbers. UserError that names `[what]` for other JSON.
std::vector<std::string> text_items(std::string_view text, std::string_view what);

// The same for an option. Of named paths, an object is an item, too, by itself or in a JSON list.
std::vector<std::string> text_items(std::string_view text, const OptionRow& row);

// Whether the option's list grows when it is given again.
bool grows(const OptionRow& row);

// Sets the providers of an op: at least one, without repeats.
void assign_priority(Options& options, std::string_view op, const std::vector<std::string>& items);

// Checks the value against the row's limits and stores it. Not for ir-op-priority.
void assign_option(Options& options, const OptionRow& row, std::string_view text);
void assign_option(Options& options, const OptionRow& row, const std::vector<std::string>& items);

// The items of a list option as text; empty for other options.
std::vector<std::string> option_items(const Options& options, const OptionRow& row);

// Resets the option to the default in options.def.
void reset_option(Options& options, const OptionRow& row);

}  // namespace weft
