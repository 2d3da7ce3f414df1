#include "options/options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "options/ignored_options.h"
#include "options/option_value.h"

namespace weft {
namespace {

constexpr OptionLimits any() { return {}; }
constexpr OptionLimits any_json() { return {.check = OptionCheck::any_json}; }
constexpr OptionLimits between(std::int64_t least, std::int64_t most) {
  return {.check = OptionCheck::between, .least = least, .most = most};
}
constexpr OptionLimits one_of(std::string_view words) { return {.check = OptionCheck::one_of, .words = words}; }
constexpr OptionLimits custom_op_words() { return {.check = OptionCheck::custom_op_words}; }
constexpr OptionLimits device_name() { return {.check = OptionCheck::device_name}; }
constexpr OptionLimits repeatable() { return {.check = OptionCheck::repeatable}; }
constexpr OptionLimits scaled_paths() { return {.check = OptionCheck::scaled_paths}; }
constexpr OptionLimits named_paths() { return {.check = OptionCheck::named_paths}; }
constexpr OptionLimits size_words() { return {.check = OptionCheck::size_words}; }

constexpr OptionRow kTable[] = {
#define OPTION(member, type, default_value, name, limits, effect, acts, environment, sentence) \
  {name, &Options::member, limits, OptionEffect::effect, OptionActs::acts, environment, sentence},
#define OPTION_ALIAS(...)
#include "options/options.def"
#undef OPTION
#undef OPTION_ALIAS
};

struct Alias {
  std::string_view alias;
  std::string_view name;
};

constexpr Alias kAliases[] = {
#define OPTION(...)
#define OPTION_ALIAS(alias, name) {alias, name},
#include "options/options.def"
#undef OPTION
#undef OPTION_ALIAS
};

constexpr std::string_view kPriorityPrefix = "ir-op-priority.";

// Groups that take a JSON object: it sets the options whose names begin with the group.
constexpr std::string_view kGroups[] = {"cc", "cc.pass_config", "cc.dynamic_shapes_config"};

std::string with_dashes(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

// Removes one or two leading dashes.
std::string_view strip_dashes(std::string_view name) {
  for (int i = 0; i < 2 && name.starts_with('-'); ++i) name.remove_prefix(1);
  return name;
}

std::string with_short_group(std::string_view name) {
  const std::string text(strip_dashes(name));
  constexpr std::string_view kGroup = "compilation-config";
  if (with_dashes(text).starts_with(kGroup) && (text.size() == kGroup.size() || text[kGroup.size()] == '.')) {
    return fmt::format("cc{}", text.substr(kGroup.size()));
  }
  return text;
}

// A single dash is for names of one letter, -tp, -md and -cc, so that a verb may have its own flags with one dash.
bool has_dashes_of_an_option(std::string_view name) {
  const std::string_view stripped = strip_dashes(name);
  if (name.starts_with("--")) return stripped.size() > 1;
  const bool is_short = stripped.size() == 1 || stripped == "tp" || stripped == "md";
  return is_short || stripped == "cc" || stripped.starts_with("cc.");
}

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }

std::string plain_spelling(std::string_view name) { return with_dashes(with_short_group(name)); }

const OptionRow* find_option(std::string_view name) {
  const std::string wanted = plain_spelling(name);
  for (const OptionRow& row : kTable) {
    if (with_dashes(row.name) == wanted) return &row;
    const bool takes_op = std::holds_alternative<Priorities Options::*>(row.member);
    if (takes_op && wanted.starts_with(kPriorityPrefix)) return &row;
  }
  for (const Alias& alias : kAliases) {
    if (with_dashes(alias.alias) == wanted) return find_option(alias.name);
  }
  return nullptr;
}

std::string_view option_alias(std::string_view name) {
  const std::string wanted = plain_spelling(name);
  for (const Alias& alias : kAliases)
    if (with_dashes(alias.alias) == wanted) return alias.alias;
  return "";
}

bool is_flag(const OptionRow& row) {
  return std::holds_alternative<bool Options::*>(row.member) ||
         std::holds_alternative<OptionalFlag Options::*>(row.member);
}

std::vector<std::string> option_names() {
  std::vector<std::string> names(std::begin(kGroups), std::end(kGroups));
  for (const OptionRow& row : kTable) names.emplace_back(row.name);
  for (const Alias& alias : kAliases) names.emplace_back(alias.alias);
  for (const IgnoredOption& row : ignored_options()) names.emplace_back(row.name);
  return names;
}

std::string_view option_group(std::string_view name) {
  const std::string text = plain_spelling(name);
  for (const std::string_view group : kGroups)
    if (with_dashes(group) == text) return group;
  return "";
}

std::string_view priority_op(std::string_view name) {
  const std::string_view stripped = strip_dashes(name);
  return stripped.size() > kPriorityPrefix.size() ? stripped.substr(kPriorityPrefix.size()) : std::string_view();
}

std::string unknown_option_text(std::string_view name) {
  // Users often omit the group or write the wrong one, so only the parts after the last dot are compared.
  const auto last_part = [](std::string_view full) { return std::string(full.substr(full.rfind('.') + 1)); };
  const std::vector<std::string> names = option_names();
  std::vector<std::string> parts;
  std::transform(names.begin(), names.end(), std::back_inserter(parts), last_part);
  const std::optional<std::string> near = nearest(last_part(strip_dashes(name)), parts);
  if (!near) return quote(name);
  const auto at = std::find(parts.begin(), parts.end(), *near) - parts.begin();
  return fmt::format("{}, did you mean {}?", quote(name), quote(names[static_cast<std::size_t>(at)]));
}

void fail_unknown_option(std::string_view name) {
  fail_user("[option] wanted a known option, but is {}", unknown_option_text(name));
}

namespace {

// Adds to the items that were requested before. The default of the list is not among them, as in vLLM.
void add_items(Options& options, const OptionRow& row, std::string_view text, const std::string& source) {
  const bool is_list =
      std::holds_alternative<Words Options::*>(row.member) || std::holds_alternative<Counts Options::*>(row.member);
  USER_CHECK(is_list, "[{}] wanted a list for +=, but has one value", row.name);
  const auto before = options.requested.find(std::string(row.name));
  const bool is_first = before == options.requested.end();
  std::vector<std::string> items = is_first ? std::vector<std::string>() : option_items(options, row);
  for (std::string& item : text_items(text, row)) items.push_back(std::move(item));
  assign_option(options, row, items);
  options.requested[std::string(row.name)] = {
      is_first ? std::string(text) : before->second.text + "," + std::string(text), source};
}

}  // namespace

void set_from_text(Options& options, std::string_view name, std::string_view text, const std::string& source) {
  if (const IgnoredOption* ignored = find_ignored_option(name)) {
    options.requested[std::string(ignored->name)] = {std::string(text), source};
    return;
  }
  if (name.ends_with('+') && find_option(name.substr(0, name.size() - 1)) != nullptr)
    return add_items(options, *find_option(name.substr(0, name.size() - 1)), text, source);
  if (const std::string_view group = option_group(name); !group.empty()) {
    return set_from_json(options, text, source, group);
  }
  const OptionRow* row = find_option(name);
  if (row == nullptr) fail_unknown_option(name);
  std::string full_name(row->name);
  if (std::holds_alternative<Priorities Options::*>(row->member)) {
    const std::string_view op = priority_op(name);
    if (op.empty()) return set_from_json(options, text, source, row->name);
    assign_priority(options, op, text_items(text, "ir-op-priority"));
    full_name = fmt::format("{}{}", kPriorityPrefix, op);
  } else if (grows(*row) && options.requested.contains(full_name) && options.requested.at(full_name).source == source) {
    return add_items(options, *row, text, source);
  } else {
    assign_option(options, *row, text);
  }
  options.requested[full_name] = {std::string(text), source, std::string(option_alias(name))};
}

void set_option(Options& options, std::string_view name, std::string_view text, const std::string& source) {
  try {
    set_from_text(options, name, text, source);
  } catch (const UserError& error) {
    fail_user("{} ({})", error.what(), source);
  }
}

void apply_json(Options& options, std::string_view json, const std::string& source, std::string_view group) {
  try {
    set_from_json(options, json, source, group);
  } catch (const UserError& error) {
    fail_user("{} ({})", error.what(), source);
  }
}

std::string environment_mirror(std::string_view name) {
  std::string text = "WEFT_ARG_";
  for (const char c : name) {
    if (c >= 'a' && c <= 'z') {
      text += static_cast<char>(c - 'a' + 'A');
    } else {
      text += c == '-' || c == '.' ? '_' : c;
    }
  }
  return text;
}

void apply_environment(Options& options, const EnvironmentLookup& environment) {
  const auto apply = [&](std::string_view name, const std::string& variable) {
    const std::optional<std::string> value = environment(variable);
    if (value && !value->empty()) set_option(options, name, *value, variable);
  };
  // As --no-NAME.
  const auto apply_opposite = [&](const OptionRow& row) {
    const std::string variable = environment_mirror(fmt::format("no-{}", row.name));
    const std::optional<std::string> value = environment(variable);
    if (!value || value->empty()) return;
    Options given;
    set_option(given, row.name, *value, variable);
    const bool is_on = std::visit(
        Overloaded{[&](bool Options::*member) { return given.*member; },
                   [&](OptionalFlag Options::*member) { return *(given.*member); }, [](auto) { return false; }},
        row.member);
    set_option(options, row.name, is_on ? "false" : "true", variable);
  };
  for (const OptionRow& row : kTable) {
    if (!row.environment.empty()) apply(row.name, std::string(row.environment));
  }
  for (const std::string_view group : kGroups) apply(group, environment_mirror(group));
  for (const OptionRow& row : kTable) {
    apply(row.name, environment_mirror(row.name));
    if (is_flag(row)) apply_opposite(row);
  }
  for (const IgnoredOption& row : ignored_options()) apply(row.name, environment_mirror(row.name));
}

void check_environment_names(std::span<const std::string> names, std::span<const std::string> flags) {
  std::vector<std::string> known;
  for (const std::string_view group : kGroups) known.push_back(environment_mirror(group));
  for (const OptionRow& row : kTable) {
    known.push_back(environment_mirror(row.name));
    if (is_flag(row)) known.push_back(environment_mirror(fmt::format("no-{}", row.name)));
  }
  for (const IgnoredOption& row : ignored_options()) known.push_back(environment_mirror(row.name));
  for (const std::string& flag : flags) known.push_back(environment_mirror(flag));
  for (const std::string& name : names) {
    if (!name.starts_with("WEFT_ARG_")) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    fail_user("[environment] wanted the mirror of an option, but is {}{}", quote(name), suggestion(name, known));
  }
}

namespace {

constexpr std::size_t kMostConfigBytes = 1 << 20;
constexpr const char* kCommandLine = "command line";

// A group may be in a file.
void set_from_command_line(Options& options, const std::string& name, const std::string& value) {
  std::error_code none;
  USER_CHECK(!value.empty(), "[{}] wanted a value, but is {} ({})", strip_dashes(name), quote(value), kCommandLine);
  const bool is_file = !option_group(name).empty() && !trim(value).starts_with('{') && value.find('\0') == value.npos &&
                       std::filesystem::is_regular_file(value, none);
  if (is_file) return set_option(options, name, read_file(value, kMostConfigBytes), value);
  const bool is_text = option_group(name).empty() || trim(value).starts_with('{');
  USER_CHECK(is_text, "[{}] wanted a JSON object or a file with one, but is {} ({})", option_group(name), quote(value),
             kCommandLine);
  set_option(options, name, value, kCommandLine);
}

// Of a path with a factor, which may be two words, as in llama.cpp: how many words the value has. `value` becomes
// PATH:SCALE.
std::size_t take_scaled_path(const OptionRow* row, std::span<const std::string> words, std::string& value) {
  if (row == nullptr || row->limits.check != OptionCheck::scaled_paths || words.size() < 2) return 1;
  char* end = nullptr;
  const std::string& word = words[1];
  std::strtod(word.c_str(), &end);
  const bool is_number = !word.empty() && *end == '\0';
  if (!is_number) return 1;
  value = words[0] + ":" + word;
  return 2;
}

// The words that follow the value of such an option and are values, too, as in vLLM: how many.
std::size_t take_more_named_paths(Options& options, const OptionRow* row, std::span<const std::string> words) {
  if (row == nullptr || row->limits.check != OptionCheck::named_paths) return 0;
  std::size_t count = 0;
  const auto is_value = [](const std::string& word) {
    return word.starts_with('{') || (!word.starts_with('-') && word.find('=') != std::string::npos);
  };
  while (count < words.size() && is_value(words[count]))
    set_from_command_line(options, std::string(row->name), words[count++]);
  return count;
}

}  // namespace

std::optional<bool> option_takes_value(std::string_view flag) {
  if (flag.size() == 3 && flag.starts_with("-O")) return false;
  if (flag.empty() || flag[0] != '-' || !has_dashes_of_an_option(flag)) return std::nullopt;
  if (!option_group(flag).empty() || find_ignored_option(flag) != nullptr) return true;
  if (const OptionRow* row = find_option(flag.substr(0, flag.size() - (flag.ends_with('+') ? 1 : 0))))
    return !is_flag(*row);
  const OptionRow* opposite = flag.starts_with("--no-") ? find_option(flag.substr(5)) : nullptr;
  return opposite != nullptr && is_flag(*opposite) ? std::optional(false) : std::nullopt;
}

std::size_t take_option(Options& options, std::span<const std::string> words) {
  const std::string source = kCommandLine;
  if (words.empty() || words[0].size() < 2 || words[0][0] != '-') return 0;
  const std::string& word = words[0];
  if (word.size() == 3 && word.starts_with("-O")) {
    set_option(options, "O", word.substr(2), source);
    return 1;
  }
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  if (!has_dashes_of_an_option(name)) return 0;
  const bool is_group = !option_group(name).empty();
  const bool is_ignored = find_ignored_option(name) != nullptr;
  const bool adds = name.ends_with('+');
  const OptionRow* row = is_group ? nullptr : find_option(name.substr(0, name.size() - (adds ? 1 : 0)));
  if (row == nullptr && !is_group && !is_ignored) {
    const OptionRow* opposite = name.starts_with("--no-") ? find_option(name.substr(5)) : nullptr;
    if (opposite != nullptr && is_flag(*opposite) && equals == std::string::npos) {
      set_option(options, opposite->name, "false", source);
      return 1;
    }
    // No other parser accepts names of this group, so an unknown one is an error here.
    if (with_short_group(name).starts_with("cc.")) fail_unknown_option(name);
    return 0;
  }
  if (equals != std::string::npos) {
    set_from_command_line(options, name, word.substr(equals + 1));
    return 1 + take_more_named_paths(options, row, words.subspan(1));
  }
  if (row != nullptr && is_flag(*row)) {
    set_option(options, name, "true", source);
    return 1;
  }
  USER_CHECK(words.size() > 1, "[{}] wanted a value, but the command line ends", strip_dashes(name));
  std::string value = words[1];
  const std::size_t taken = take_scaled_path(row, words.subspan(1), value);
  set_from_command_line(options, name, value);
  if (taken == 2) return 3;
  return 2 + take_more_named_paths(options, row, words.subspan(2));
}

}  // namespace weft
