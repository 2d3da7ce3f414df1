#include "options/options_text.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "base/json.h"
#include "base/text.h"
#include "options/ignored_options.h"
#include "options/option_value.h"

namespace weft {
namespace {

Json value_json(const Options& options, const OptionRow& row) {
  return std::visit(Overloaded{
                        [&](OptionalFlag Options::*member) {
                          const OptionalFlag& flag = options.*member;
                          return flag ? Json(*flag) : Json(nullptr);
                        },
                        [&](std::int64_t Options::*member) {
                          const bool is_automatic = options.*member < row.limits.least;
                          return is_automatic ? Json(nullptr) : Json(options.*member);
                        },
                        [&](auto member) { return Json(options.*member); },
                    },
                    row.member);
}

// Whether a word contains a comma, bracket or space that would be parsed as list syntax.
bool needs_json(const Words& words) {
  const auto is_special = [](const std::string& word) {
    return word.find(',') != std::string::npos || word.starts_with('[') || trim(word).size() != word.size();
  };
  return std::any_of(words.begin(), words.end(), is_special);
}

constexpr std::size_t kWidestValue = 24;

// Formats a value for one line of a terminal. It is quoted only if it contains special characters.
std::string shown(const std::string& value) {
  if (value.empty()) return std::string(1, '-');
  const std::string in_quotes = quote(value);
  return in_quotes.size() == value.size() + 2 ? value : in_quotes;
}

std::string_view effect_text(OptionEffect effect) {
  switch (effect) {
    case OptionEffect::code:
      return "code";
    case OptionEffect::run:
      return "run";
    case OptionEffect::none:
      return "none";
  }
  return "none";
}

}  // namespace

std::string value_text(const Options& options, const OptionRow& row) {
  return std::visit(Overloaded{
                        [&](bool Options::*member) -> std::string { return options.*member ? "true" : "false"; },
                        [&](OptionalFlag Options::*member) -> std::string {
                          const OptionalFlag& flag = options.*member;
                          return !flag ? "auto" : *flag ? "true" : "false";
                        },
                        [&](std::int64_t Options::*member) {
                          const std::int64_t number = options.*member;
                          return number < row.limits.least ? "auto" : fmt::format("{}", number);
                        },
                        [&](std::string Options::*member) { return options.*member; },
                        [&](Counts Options::*member) { return fmt::format("{}", fmt::join(options.*member, ",")); },
                        [&](Words Options::*member) {
                          const Words& words = options.*member;
                          return needs_json(words) ? json_text(Json(words)) : fmt::format("{}", fmt::join(words, ","));
                        },
                        [&](Priorities Options::*member) { return json_text(Json(options.*member)); },
                    },
                    row.member);
}

std::string type_text(const OptionRow& row) {
  const bool is_word = row.limits.check == OptionCheck::one_of;
  return std::visit(Overloaded{
                        [](bool Options::*) { return "flag"; },
                        [](OptionalFlag Options::*) { return "flag"; },
                        [](std::int64_t Options::*) { return "number"; },
                        [&](std::string Options::*) { return is_word ? "word" : "text"; },
                        [](Counts Options::*) { return "list of numbers"; },
                        [](Words Options::*) { return "list of names"; },
                        [](Priorities Options::*) { return "providers per op"; },
                    },
                    row.member);
}

std::string limits_text(const OptionRow& row) {
  if (row.limits.check == OptionCheck::between) return fmt::format("{} to {}", row.limits.least, row.limits.most);
  if (row.limits.check != OptionCheck::one_of) return "";
  std::vector<std::string> words;
  for (const std::string& spellings : split_text(row.limits.words, ' '))
    words.push_back(split_text(spellings, '|').front());
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string options_text(const Options& options) {
  const Options defaults;
  std::vector<std::string> values;
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (const OptionRow& row : option_table()) {
    values.push_back(shown(value_text(options, row)));
    name_width = std::max(name_width, row.name.size());
    value_width = std::max(value_width, std::min(values.back().size(), kWidestValue));
  }
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const OptionRow& row = option_table()[i];
    text += fmt::format("{:<{}}  {:<{}}  {:<4}  {}", row.name, name_width, values[i], value_width,
                        effect_text(row.effect), row.sentence);
    if (const std::string allowed = limits_text(row); !allowed.empty()) text += fmt::format(" [{}]", allowed);
    const std::string before = shown(value_text(defaults, row));
    if (before != values[i]) text += fmt::format(" (default {})", before);
    const auto requested = options.requested.find(std::string(row.name));
    if (requested != options.requested.end()) text += fmt::format(" (from {})", requested->second.source);
    text += '\n';
  }
  for (const IgnoredOption& row : ignored_options())
    text += fmt::format("{:<{}}  {:<{}}  {:<4}  {}\n", row.name, name_width, "-", value_width,
                        effect_text(OptionEffect::none), row.sentence);
  return text;
}

std::string options_json(const Options& options) {
  const Options defaults;
  Json list = Json::array();
  for (const OptionRow& row : option_table()) {
    const auto requested = options.requested.find(std::string(row.name));
    list.push_back(Json{
        {"name", row.name},
        {"type", type_text(row)},
        {"allowed", limits_text(row)},
        {"default", value_json(defaults, row)},
        {"value", value_json(options, row)},
        {"source", requested == options.requested.end() ? Json(nullptr) : Json(requested->second.source)},
        {"effect", effect_text(row.effect)},
        {"changes_code", row.effect == OptionEffect::code},
        {"environment", row.environment},
        {"sentence", row.sentence},
    });
  }
  for (const IgnoredOption& row : ignored_options()) {
    const auto requested = options.requested.find(std::string(row.name));
    list.push_back(Json{
        {"name", row.name},
        {"type", "ignored"},
        {"allowed", ""},
        {"default", nullptr},
        {"value", nullptr},
        {"source", requested == options.requested.end() ? Json(nullptr) : Json(requested->second.source)},
        {"effect", effect_text(OptionEffect::none)},
        {"changes_code", false},
        {"environment", ""},
        {"sentence", row.sentence},
    });
  }
  return json_text(list, 2);
}

std::string requested_json(const Options& options) {
  Json object = Json::object();
  for (const auto& [name, requested] : options.requested) object[name] = requested.text;
  return json_text(object);
}

std::string values_json(const Options& options) {
  Json object = Json::object();
  for (const OptionRow& row : option_table()) object[std::string(row.name)] = value_json(options, row);
  return json_text(object);
}

std::string reason_without_effect(const Options& effective, const OptionRow& row) {
  if (row.acts == OptionActs::always) return "";
  if (effective.mode == "none") return "nothing is compiled";
  if (row.acts == OptionActs::generated && effective.backend == "eager") return "no code is generated";
  if (row.acts == OptionActs::sized && effective.compile_sizes.empty()) return "no size is compiled exactly";
  if (row.acts == OptionActs::captured && effective.cudagraph_mode == "NONE") return "nothing is captured";
  return "";
}

std::vector<std::string> options_without_effect(const Options& effective) {
  // A pasted config may have many, so those with the same reason and source share a line.
  struct Line {
    bool is_accepted;
    std::string reason;
    std::vector<std::string> names;
  };
  std::vector<Line> lines;
  const auto add = [&](const std::string& name, bool is_accepted, const std::string& reason) {
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& one) { return one.reason == reason; });
    if (line == lines.end()) line = lines.insert(line, {is_accepted, reason, {}});
    line->names.push_back(name);
  };
  for (const auto& [name, requested] : effective.requested) {
    const OptionRow* row = find_option(name);
    if (find_ignored_option(name) != nullptr || (row != nullptr && row->effect == OptionEffect::none)) {
      add(name, true, fmt::format("no effect in this version ({})", requested.source));
    } else if (row != nullptr) {
      const std::string reason = reason_without_effect(effective, *row);
      if (!reason.empty()) add(name, false, fmt::format("no effect in this run: {} ({})", reason, requested.source));
    }
  }
  std::vector<std::string> notes;
  for (const auto& [is_accepted, reason, names] : lines) {
    const bool is_one = names.size() == 1;
    const char* const accepted = !is_accepted ? "" : is_one ? "is accepted but " : "are accepted but ";
    notes.push_back(fmt::format("[{}] {}{} {}", fmt::join(names, ", "), accepted, is_one ? "has" : "have", reason));
  }
  return notes;
}

std::vector<std::pair<std::string, std::string>> code_options(const Options& effective) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const OptionRow& row : option_table())
    if (row.effect == OptionEffect::code) values.emplace_back(row.name, value_text(effective, row));
  return values;
}

}  // namespace weft
