// Options from JSON: implements set_from_json of options/option_value.h.

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "options/option_value.h"
#include "options/options.h"

namespace weft {
namespace {

constexpr JsonLimits kLimits = {.most_bytes = 1 << 20, .deepest = 16, .keys_once = true};

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : json_text(value); }

void apply_object(Options& options, const Json& object, const std::string& source, std::string_view group);

std::vector<std::string> items_of(const Json& list, std::string_view name) {
  std::vector<std::string> items;
  for (const Json& item : list) {
    const bool is_item = item.is_string() || item.is_number_integer();
    USER_CHECK(is_item, "[{}] wanted a list of names or whole numbers, but one item is {}", name,
               quote(json_text(item)));
    items.push_back(text_of(item));
  }
  return items;
}

void apply_row(Options& options, const OptionRow& row, const Json& value, const std::string& source) {
  const bool is_flag_value = value.is_boolean();
  const bool is_text = std::holds_alternative<std::string Options::*>(row.member);
  const bool takes_json = row.limits.check == OptionCheck::any_json;
  if (value.is_null()) {
    reset_option(options, row);
  } else if (value.is_array() && !takes_json) {
    assign_option(options, row, items_of(value, row.name));
  } else {
    USER_CHECK(!value.is_object() || takes_json, "[{}] wanted a value, but is an object", row.name);
    USER_CHECK(!is_flag_value || is_flag(row) || takes_json, "[{}] wanted a value, but is {}", row.name,
               json_text(value));
    // A word may be a number in JSON ("mode": 3), but free text may not.
    const bool number_as_text = value.is_number() && is_text && row.limits.check == OptionCheck::any;
    USER_CHECK(!number_as_text, "[{}] wanted text, but is {}", row.name, json_text(value));
    assign_option(options, row, text_of(value));
  }
  options.requested[std::string(row.name)] = {text_of(value), source};
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

void apply_member(Options& options, const std::string& name, const Json& value, const std::string& source) {
  if (const std::string_view group = option_group(name); !group.empty()) {
    if (value.is_null()) return;
    USER_CHECK(value.is_object(), "[{}] wanted an object, but is {}", name, quote(json_text(value)));
    return apply_object(options, value, source, group);
  }
  const OptionRow* row = find_option(name);
  if (row == nullptr) fail_unknown_option(name);
  if (!std::holds_alternative<Priorities Options::*>(row->member)) return apply_row(options, *row, value, source);
  const std::string_view op = priority_op(name);
  if (op.empty()) return apply_priorities(options, value, source);
  apply_priorities(options, Json::object({{std::string(op), value}}), source);
}

void apply_object(Options& options, const Json& object, const std::string& source, std::string_view group) {
  for (const auto& [key, value] : object.items()) {
    apply_member(options, group.empty() ? key : fmt::format("{}.{}", group, key), value, source);
  }
}

}  // namespace

void set_from_json(Options& options, std::string_view json, const std::string& source, std::string_view group) {
  const Json object = parse_json(json, "options", kLimits);
  USER_CHECK(object.is_object(), "[{}] wanted a JSON object, but is {}", group.empty() ? "options" : group,
             quote(json));
  Options changed = options;
  if (group == "ir-op-priority") {
    apply_priorities(changed, object, source);
  } else {
    apply_object(changed, object, source, group);
  }
  options = std::move(changed);
}

}  // namespace weft
