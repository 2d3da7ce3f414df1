#include "io/jinja/filters.h"

#include <algorithm>

#include "io/jinja/arithmetic.h"
#include "io/jinja/number.h"

namespace weft::jinja {

const Filter* find_filter(std::string_view name) {
  for (const auto filters :
       {text_filters(), value_filters(), sequence_filters(), selection_filters(), order_filters()}) {
    const auto found =
        std::find_if(filters.begin(), filters.end(), [name](const Filter& filter) { return filter.name == name; });
    if (found != filters.end()) return &*found;
  }
  return nullptr;
}

Value attribute_path(Runtime& runtime, const Value& value, const Value* attribute, const Value* otherwise) {
  if (attribute == nullptr || attribute->is_none()) return value;
  const auto follow = [&](const Value& object, const Value& part) {
    Value found = runtime.item(object, part);
    return found.is_undefined() && otherwise != nullptr && !otherwise->is_none() ? *otherwise : found;
  };
  if (!attribute->is_string()) return follow(value, *attribute);
  Value result = value;
  std::string_view path = attribute->text();
  for (bool more = true; more;) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, dot);
    const bool is_index = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    result =
        follow(result, is_index ? Value::integer(parse_integer(part).value_or(0)) : Value::string(std::string(part)));
    more = dot < path.size();
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return result;
}

Arguments arguments_after(const Arguments& arguments, std::size_t count) {
  const auto skipped = static_cast<std::ptrdiff_t>(std::min(count, arguments.positional.size()));
  return {{arguments.positional.begin() + skipped, arguments.positional.end()}, arguments.named};
}

}  // namespace weft::jinja
