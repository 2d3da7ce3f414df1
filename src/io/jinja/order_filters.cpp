// Filters that compare items with each other: sort, dictsort, groupby, unique, min, max.

#include <algorithm>
#include <set>

#include "io/jinja/comparison.h"
#include "io/jinja/filters.h"
#include "io/jinja/iteration.h"
#include "io/jinja/letter_case.h"

namespace weft::jinja {

namespace {

struct Keyed {
  Value key;
  Value item;
};

bool is_flag_set(const Value* flag) { return flag != nullptr && is_true(*flag); }

// Strings are compared without regard to case, unless the caller requests it.
Value comparison_key(Runtime& runtime, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return make_string(runtime.budget(), to_lower(value.text()));
}

// Items with equal keys keep their order, also in a descending sort.
void sort_by_key(Runtime& runtime, std::vector<Keyed>& keyed, bool reversed) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& left, const Keyed& right) {
    return reversed ? is_less(runtime.budget(), right.key, left.key) : is_less(runtime.budget(), left.key, right.key);
  });
}

Value items_of(Runtime& runtime, const std::vector<Keyed>& keyed) {
  std::vector<Value> items;
  for (const Keyed& entry : keyed) items.push_back(entry.item);
  return make_list(runtime.budget(), std::move(items));
}

// Splits "a,b" at the commas into names. Any other value is a single attribute.
std::vector<Value> split_attributes(const Value* attribute) {
  if (attribute == nullptr) return {Value::none()};
  if (!attribute->is_string()) return {*attribute};
  std::vector<Value> names;
  std::string_view rest = attribute->text();
  for (bool more = true; more;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    names.push_back(Value::string(std::string(rest.substr(0, comma))));
    more = comma < rest.size();
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

Value sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const std::vector<Value> attributes = split_attributes(values[2]);
  std::vector<Keyed> keyed;
  const auto items = iterate(runtime.budget(), input);
  for (const Value& item : *items) {
    std::vector<Value> keys;
    for (const Value& attribute : attributes)
      keys.push_back(comparison_key(runtime, attribute_path(runtime, item, &attribute), is_flag_set(values[1])));
    keyed.push_back({make_list(runtime.budget(), std::move(keys)), item});
  }
  sort_by_key(runtime, keyed, is_flag_set(values[0]));
  return items_of(runtime, keyed);
}

Value sort_dict(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = values[1] != nullptr && values[1]->is_string() ? values[1]->text() : "key";
  if (by != "key" && by != "value") fail_template("You can only sort by either \"key\" or \"value\"");
  if (!input.is_dict()) fail_template("dictsort() needs a mapping, but got {}", type_name(input));
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : input.dict().entries())
    keyed.push_back({comparison_key(runtime, by == "key" ? key : value, is_flag_set(values[0])),
                     make_sequence(runtime.budget(), Kind::tuple, {key, value})});
  sort_by_key(runtime, keyed, is_flag_set(values[2]));
  return items_of(runtime, keyed);
}

Value group(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  std::vector<Keyed> keyed;
  const auto items = iterate(runtime.budget(), input);
  for (const Value& item : *items)
    keyed.push_back(
        {comparison_key(runtime, attribute_path(runtime, item, values[0], values[1]), is_flag_set(values[2])), item});
  sort_by_key(runtime, keyed, false);
  std::vector<Value> groups;
  for (auto begin = keyed.begin(); begin != keyed.end();) {
    auto end = begin;
    std::vector<Value> members;
    for (; end != keyed.end() && is_equal(runtime.budget(), begin->key, end->key); ++end) members.push_back(end->item);
    // A key that is not equal to itself, such as NaN, forms a group of one item.
    if (end == begin) members.push_back((end++)->item);
    const Value name = attribute_path(runtime, members.front(), values[0], values[1]);
    groups.push_back(
        make_sequence(runtime.budget(), Kind::tuple, {name, make_list(runtime.budget(), std::move(members))}, "group"));
    begin = end;
  }
  return make_list(runtime.budget(), std::move(groups));
}

Value unique(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("unique", arguments, {"case_sensitive", "attribute"});
  std::set<std::string> seen;
  std::vector<Value> kept;
  const auto items = iterate(runtime.budget(), input);
  for (const Value& item : *items) {
    const Value key = comparison_key(runtime, attribute_path(runtime, item, values[1]), is_flag_set(values[0]));
    runtime.budget().step(1 + key.weight());
    if (seen.insert(hash_key(key)).second) kept.push_back(item);
  }
  return make_iterator(runtime.budget(), std::move(kept));
}

template <bool largest>
Value extreme(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("min or max", arguments, {"case_sensitive", "attribute"});
  std::optional<Keyed> best;
  const auto items = iterate(runtime.budget(), input);
  for (const Value& item : *items) {
    Keyed candidate{comparison_key(runtime, attribute_path(runtime, item, values[1]), is_flag_set(values[0])), item};
    const bool better = !best || (largest ? is_less(runtime.budget(), best->key, candidate.key)
                                          : is_less(runtime.budget(), candidate.key, best->key));
    if (better) best = std::move(candidate);
  }
  return best ? best->item : Value::undefined("No aggregated item, sequence was empty.");
}

constexpr Filter kOrderFilters[] = {
    {"dictsort", sort_dict}, {"groupby", group}, {"max", extreme<true>},
    {"min", extreme<false>}, {"sort", sort},     {"unique", unique},
};

}  // namespace

std::span<const Filter> order_filters() { return kOrderFilters; }

}  // namespace weft::jinja
