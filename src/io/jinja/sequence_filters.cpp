// Filters that split and combine lists, mappings and strings.

#include <algorithm>

#include "io/jinja/arithmetic.h"
#include "io/jinja/filters.h"
#include "io/jinja/iteration.h"
#include "io/jinja/printer.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

std::size_t count_argument(std::string_view callee, const Value* argument) {
  const std::int64_t count = integer_argument(callee, argument, 0);
  constexpr std::int64_t kMaxCount = 1'000'000;
  if (count < 1 || count > kMaxCount) fail_template("{}() needs a count from 1 to {}", callee, kMaxCount);
  return static_cast<std::size_t>(count);
}

Value first(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("first", arguments, {});
  if (input.is(Kind::iterator)) {
    Sequence& sequence = input.sequence();
    if (sequence.consumed < sequence.items.size()) return sequence.items[sequence.consumed++];
  }
  const auto items = iterate(runtime.budget(), input);
  return items->empty() ? Value::undefined("No first item, sequence was empty.") : items->front();
}

Value last(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("last", arguments, {});
  if (input.is(Kind::iterator)) fail_template("'{}' object is not reversible", type_name(input));
  const auto items = iterate(runtime.budget(), input);
  return items->empty() ? Value::undefined("No last item, sequence was empty.") : items->back();
}

Value to_list(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("list", arguments, {});
  return make_list(runtime.budget(), *iterate(runtime.budget(), input));
}

Value items(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("items", arguments, {});
  std::vector<Value> pairs;
  if (!input.is_undefined()) {
    if (!input.is_dict()) fail_template("Can only get item pairs from a mapping.");
    for (const auto& [key, value] : input.dict().entries())
      pairs.push_back(make_sequence(runtime.budget(), Kind::tuple, {key, value}));
  }
  return make_iterator(runtime.budget(), std::move(pairs));
}

Value join_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("join", arguments, {"d", "attribute"});
  const std::string separator = values[0] == nullptr ? "" : to_text(runtime.budget(), *values[0]);
  Printer out(runtime.budget());
  bool is_first = true;
  const auto items = iterate(runtime.budget(), input);
  for (const Value& item : *items) {
    if (!is_first) out.append(separator);
    is_first = false;
    out.append_str(attribute_path(runtime, item, values[1]));
  }
  return Value::string(out.take());
}

Value reverse(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("reverse", arguments, {});
  if (input.is_string()) {
    const Value none = Value::none();
    return runtime.slice(input, none, none, Value::integer(-1));
  }
  const bool is_list = input.is(Kind::iterator);
  std::vector<Value> reversed = *iterate(runtime.budget(), input);
  std::reverse(reversed.begin(), reversed.end());
  return is_list ? make_list(runtime.budget(), std::move(reversed))
                 : make_iterator(runtime.budget(), std::move(reversed));
}

Value batch(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("batch", arguments, {"linecount", "fill_with"}, 1);
  const std::size_t size = count_argument("batch", values[0]);
  const bool fills = values[1] != nullptr && !values[1]->is_none();
  std::vector<Value> batches;
  std::vector<Value> current;
  const auto all = iterate(runtime.budget(), input);
  for (std::size_t i = 0; i < all->size(); ++i) {
    current.push_back((*all)[i]);
    const bool is_last = i + 1 == all->size();
    if (is_last && fills) {
      runtime.budget().step(size - current.size());
      current.resize(size, *values[1]);
    }
    if (current.size() == size || is_last) batches.push_back(make_list(runtime.budget(), std::exchange(current, {})));
  }
  return make_iterator(runtime.budget(), std::move(batches));
}

// Returns the requested number of lists. If the items do not divide evenly, the first lists are longer by one.
Value slice(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("slice", arguments, {"slices", "fill_with"}, 1);
  const std::size_t count = count_argument("slice", values[0]);
  const bool fills = values[1] != nullptr && !values[1]->is_none();
  const auto all = iterate(runtime.budget(), input);
  const std::size_t longer = all->size() % count;
  std::vector<Value> slices;
  auto begin = all->begin();
  for (std::size_t i = 0; i < count; ++i) {
    const auto end = begin + static_cast<std::ptrdiff_t>(all->size() / count + (i < longer ? 1 : 0));
    std::vector<Value> part(begin, end);
    if (fills && i >= longer) part.push_back(*values[1]);
    slices.push_back(make_list(runtime.budget(), std::move(part)));
    begin = end;
  }
  return make_iterator(runtime.budget(), std::move(slices));
}

Value sum(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("sum", arguments, {"attribute", "start"});
  Value total = values[1] != nullptr ? *values[1] : Value::integer(0);
  if (total.is_string()) fail_template("sum() can't sum strings");
  const auto items = iterate(runtime.budget(), input);
  for (const Value& item : *items)
    total = calculate(runtime.budget(), Operator::add, total, attribute_path(runtime, item, values[0]));
  return total;
}

constexpr Filter kSequenceFilters[] = {
    {"batch", batch},  {"first", first},     {"items", items}, {"join", join_filter}, {"last", last},
    {"list", to_list}, {"reverse", reverse}, {"slice", slice}, {"sum", sum},
};

}  // namespace

std::span<const Filter> sequence_filters() { return kSequenceFilters; }

}  // namespace weft::jinja
