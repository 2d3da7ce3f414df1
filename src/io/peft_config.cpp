#include "io/peft_config.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "io/config_fields.h"
#include "io/known_keys.h"

namespace weft {
namespace {

constexpr Range<double> kAlphas{-1e6, 1e6};
constexpr Range<std::int64_t> kRanks{1, 65536};
constexpr const char* kAllLinear = "all-linear";

bool matches(const Regex& whole, const std::string& module) {
  Regex::Scratch scratch;
  return whole.find(module, 0, scratch).has_value();
}

// Python's re.fullmatch.
Regex whole_match(const std::string& expression) { return Regex::compile("^(?:" + expression + ")$"); }

}  // namespace

PeftConfig::PeftConfig(std::string_view text, std::string where) : where_(std::move(where)) {
  const Json json = parse_config_json(text, where_);
  unknown_keys_ = weft::unknown_keys(KeyTable::peft, json, where_);
  const JsonFields fields(json, where_);
  rank_ = static_cast<double>(needed_integer_in(fields, "r", kRanks));
  alpha_ = needed_real_in(fields, "lora_alpha", kAlphas);
  uses_root_ = fields.find_boolean("use_rslora").value_or(false);
  const auto read_patterns = [&](const char* key, Patterns& patterns, const auto& value_in) {
    const auto object = fields.find_object(key);
    if (!object) return;
    for (const std::string& name : object->keys())
      patterns.emplace_back(whole_match("(?:.*\\.)?(?:" + name + ")"), static_cast<double>(value_in(*object, name)));
  };
  read_patterns("rank_pattern", ranks_, [](const JsonFields& object, const std::string& name) {
    return needed_integer_in(object, name, kRanks);
  });
  read_patterns("alpha_pattern", alphas_, [](const JsonFields& object, const std::string& name) {
    return needed_real_in(object, name, kAlphas);
  });
  const Json* targets = fields.value("target_modules");
  if (targets == nullptr || *targets == kAllLinear) return;
  if (targets->is_string()) {
    target_expression_ = whole_match(targets->get<std::string>());
    return;
  }
  const bool are_names = targets->is_array() &&
                         std::all_of(targets->begin(), targets->end(), [](const Json& one) { return one.is_string(); });
  USER_CHECK(are_names, "[{}] target_modules must be a list of names, a regular expression or {}, but is {}", where_,
             kAllLinear, shown_json(*targets));
  targets_ = targets->get<std::vector<std::string>>();
}

void PeftConfig::check_module(const std::string& module) const {
  const bool is_named = std::any_of(targets_.begin(), targets_.end(), [&](const std::string& target) {
    return module == target || module.ends_with("." + target);
  });
  const bool is_target = target_expression_ ? matches(*target_expression_, module) : targets_.empty() || is_named;
  USER_CHECK(is_target, "[{}] target_modules does not cover {}, for which there are tensors", where_, module);
}

double PeftConfig::value_of(const Patterns& patterns, const std::string& module, double other) {
  for (const auto& [expression, value] : patterns)
    if (matches(expression, module)) return value;
  return other;
}

std::int64_t PeftConfig::rank_of(const std::string& module) const {
  return static_cast<std::int64_t>(value_of(ranks_, module, rank_));
}

double PeftConfig::scale_of(const std::string& module) const {
  const auto rank = static_cast<double>(rank_of(module));
  return value_of(alphas_, module, alpha_) / (uses_root_ ? std::sqrt(rank) : rank);
}

}  // namespace weft
