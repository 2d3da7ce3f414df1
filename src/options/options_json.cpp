// Options from JSON: implements set_from_json of options/option_value.h.

#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/python_text.h"
#include "base/text.h"
#include "options/ignored_options.h"
#include "options/option_value.h"
#include "options/options.h"

namespace weft {
namespace {

constexpr JsonLimits kLimits = {.most_bytes = 1 << 20, .deepest = 16, .keys_once = true};

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : json_text(value); }

std::vector<std::string> items_of(const Json& list, std::string_view name, bool may_be_objects = false) {
  std::vector<std::string> items;
  for (const Json& item : list) {
    const bool is_item = item.is_string() || item.is_number_integer() || (may_be_objects && item.is_object());
    USER_CHECK(is_item, "[{}] wanted a list of names or whole numbers, but one item is {}", name,
               quote(json_text(item)));
    items.push_back(text_of(item));
  }
  return items;
}

void apply_row(Options& options, const OptionRow& row, const Json& value, const RequestedOption& requested) {
  const bool is_flag_value = value.is_boolean();
  const bool is_text = std::holds_alternative<std::string Options::*>(row.member);
  const bool takes_json = row.limits.check == OptionCheck::any_json;
  // vLLM prints a word of its compilation config that is not set as "".
  const bool is_unset = row.limits.check == OptionCheck::one_of && row.name.starts_with("cc.") && value == "";
  if (value.is_null() || is_unset) {
    reset_option(options, row);
  } else if (value.is_array() && !is_text) {
    assign_option(options, row, items_of(value, row.name, row.limits.check == OptionCheck::named_paths));
  } else {
    USER_CHECK(!value.is_object() || takes_json, "[{}] wanted a value, but is an object", row.name);
    USER_CHECK(!is_flag_value || is_flag(row) || takes_json, "[{}] wanted a value, but is {}", row.name,
               json_text(value));
    // A word may be a number in JSON ("mode": 3), but free text may not.
    const bool number_as_text = value.is_number() && is_text && row.limits.check == OptionCheck::any;
    USER_CHECK(!number_as_text, "[{}] wanted text, but is {}", row.name, json_text(value));
    assign_option(options, row, text_of(value));
  }
  options.requested[std::string(row.name)] = requested;
}

void apply_priorities(Options& options, const Json& object, const std::string& source) {
  USER_CHECK(object.is_object(), "[ir-op-priority] wanted an object of lists of providers, but is {}",
             quote(json_text(object)));
  for (const auto& [op, providers] : object.items()) {
    assign_priority(options, op,
                    providers.is_array() ? items_of(providers, "ir-op-priority")
                                         : text_items(text_of(providers), "ir-op-priority"));
    options.requested["ir-op-priority." + op] = {text_of(providers), source};
  }
}

// Sets the members of an object and collects what is wrong with them.
class ObjectReader {
 public:
  ObjectReader(Options& options, const std::string& source) : options_(options), source_(source) {}

  void read(const Json& object, std::string_view group) {
    for (const auto& [key, value] : object.items()) {
      const std::string name = group.empty() ? key : fmt::format("{}.{}", group, key);
      try {
        read_member(name, value);
      } catch (const UserError& error) {
        errors_.emplace_back(error.what());
      }
    }
  }

  // UserError with everything that is wrong.
  void check() const {
    std::vector<std::string> all = errors_;
    if (!unknown_.empty())
      all.insert(all.begin(),
                 fmt::format("[option] wanted {}, but {} {}", unknown_.size() == 1 ? "a known option" : "known options",
                             unknown_.size() == 1 ? "is" : "are", fmt::join(unknown_, "; ")));
    USER_CHECK(all.empty(), "{}", fmt::join(all, "; "));
  }

 private:
  void read_member(const std::string& name, const Json& value) {
    if (const std::string_view group = option_group(name); !group.empty()) {
      if (value.is_null()) return;
      USER_CHECK(value.is_object(), "[{}] wanted an object, but is {}", name, quote(json_text(value)));
      return read(value, group);
    }
    if (const IgnoredOption* ignored = find_ignored_option(name)) {
      options_.requested[std::string(ignored->name)] = {text_of(value), source_};
      return;
    }
    const OptionRow* row = find_option(name);
    if (row == nullptr) return unknown_.push_back(unknown_option_text(name));
    if (!std::holds_alternative<Priorities Options::*>(row->member)) {
      // In another program's keys null and the empty text mean that nothing is set, so an environment variable counts.
      const std::string alias(option_alias(name));
      if (!alias.empty() && (value.is_null() || value == "")) return;
      return apply_row(options_, *row, value, {text_of(value), source_, alias});
    }
    const std::string_view op = priority_op(name);
    if (op.empty()) return apply_priorities(options_, value, source_);
    apply_priorities(options_, Json::object({{std::string(op), value}}), source_);
  }

  Options& options_;
  const std::string& source_;
  std::vector<std::string> unknown_;
  std::vector<std::string> errors_;
};

// JSON, or else what vLLM's log prints.
Json parse_options(std::string_view text, const std::string& where) {
  if (text.size() <= kLimits.most_bytes && parse_json(text).is_discarded())
    if (const auto json = json_of_python(text); json && !parse_json(*json).is_discarded())
      return parse_json(*json, where, kLimits);
  return parse_json(text, where, kLimits);
}

}  // namespace

void set_from_json(Options& options, std::string_view json, const std::string& source, std::string_view group) {
  const std::string where(group.empty() ? "options" : group);
  const Json object = parse_options(json, where);
  USER_CHECK(object.is_object(), "[{}] wanted a JSON object, but is {}", where, quote(json));
  Options changed = options;
  if (group == "ir-op-priority") {
    apply_priorities(changed, object, source);
  } else {
    ObjectReader reader(changed, source);
    reader.read(object, group);
    reader.check();
  }
  options = std::move(changed);
}

}  // namespace weft
