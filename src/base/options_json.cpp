// Options from JSON: set_from_json of base/option_value.h.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/option_value.h"
#include "base/options.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr int kDeepest = 16;

// The parser keeps the last of several equal keys without a word, so they are caught on the way.
nlohmann::json parse(std::string_view text) {
  USER_CHECK(text.size() <= kMostBytes, "[options] wanted at most {} bytes of JSON, but has {}", kMostBytes,
             text.size());
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    USER_CHECK(depth <= kDeepest, "[options] wanted JSON nested at most {} deep", kDeepest);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      USER_CHECK(keys.back().insert(key).second, "[options] has the key {} twice", quote(key));
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, check);
  } catch (const nlohmann::json::exception& error) {
    fail_user("[options] is not JSON: {}", quote(error.what(), 400));
  }
}

std::string text_of(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

void apply_object(Options& options, const nlohmann::json& object, const std::string& source, std::string_view group);

std::vector<std::string> items_of(const nlohmann::json& list, std::string_view name) {
  std::vector<std::string> items;
  for (const nlohmann::json& item : list) {
    const bool is_item = item.is_string() || item.is_number_integer();
    USER_CHECK(is_item, "[{}] wanted a list of names or whole numbers, but one item is {}", name, quote(item.dump()));
    items.push_back(text_of(item));
  }
  return items;
}

void apply_row(Options& options, const OptionRow& row, const nlohmann::json& value, const std::string& source) {
  const bool is_flag_value = value.is_boolean();
  const bool is_text = std::holds_alternative<std::string Options::*>(row.member);
  const bool takes_json = row.limits.check == OptionCheck::any_json;
  if (value.is_null()) {
    reset_option(options, row);
  } else if (value.is_array() && !takes_json) {
    assign_option(options, row, items_of(value, row.name));
  } else {
    USER_CHECK(!value.is_object() || takes_json, "[{}] wanted a value, but is an object", row.name);
    USER_CHECK(!is_flag_value || is_flag(row) || takes_json, "[{}] wanted a value, but is {}", row.name, value.dump());
    // Words may be numbers in JSON ("mode": 3); free text may not.
    const bool number_as_text = value.is_number() && is_text && row.limits.check == OptionCheck::any;
    USER_CHECK(!number_as_text, "[{}] wanted text, but is {}", row.name, value.dump());
    assign_option(options, row, text_of(value));
  }
  options.requested[std::string(row.name)] = {text_of(value), source};
}

void apply_priorities(Options& options, const nlohmann::json& object, const std::string& source) {
  USER_CHECK(object.is_object(), "[ir-op-priority] wanted an object of lists of providers, but is {}",
             quote(object.dump()));
  for (const auto& [op, providers] : object.items()) {
    assign_priority(options, op,
                    providers.is_array() ? items_of(providers, "ir-op-priority")
                                         : text_items(text_of(providers), "ir-op-priority"));
    options.requested["ir-op-priority." + op] = {text_of(providers), source};
  }
}

void apply_member(Options& options, const std::string& name, const nlohmann::json& value, const std::string& source) {
  if (const std::string_view group = option_group(name); !group.empty()) {
    if (value.is_null()) return;
    USER_CHECK(value.is_object(), "[{}] wanted an object, but is {}", name, quote(value.dump()));
    return apply_object(options, value, source, group);
  }
  const OptionRow* row = find_option(name);
  if (row == nullptr) fail_unknown_option(name);
  if (!std::holds_alternative<Priorities Options::*>(row->member)) return apply_row(options, *row, value, source);
  const std::string_view op = priority_op(name);
  if (op.empty()) return apply_priorities(options, value, source);
  apply_priorities(options, nlohmann::json::object({{std::string(op), value}}), source);
}

void apply_object(Options& options, const nlohmann::json& object, const std::string& source, std::string_view group) {
  for (const auto& [key, value] : object.items()) {
    apply_member(options, group.empty() ? key : fmt::format("{}.{}", group, key), value, source);
  }
}

}  // namespace

void set_from_json(Options& options, std::string_view json, const std::string& source, std::string_view group) {
  const nlohmann::json object = parse(json);
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
