#include "io/jinja/object.h"

#include <algorithm>

#include "io/jinja/text.h"

namespace weft::jinja {

void Object::print(Printer&) const { fail_template("a {} has no text that could be printed", type_name()); }

std::optional<Value> Object::attribute(Runtime&, std::string_view) { return std::nullopt; }

Value Object::call(Runtime&, const Arguments&) { fail_template("'{}' object is not callable", type_name()); }

std::vector<const Value*> bind_arguments(std::string_view callee, const Arguments& arguments,
                                         std::initializer_list<std::string_view> names, std::size_t required) {
  std::vector<const Value*> values(names.size(), nullptr);
  if (arguments.positional.size() > names.size())
    fail_template("{}() takes at most {} arguments but {} are given", callee, names.size(),
                  arguments.positional.size());
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail_template("{}() has no parameter {}", callee, quote(name));
    const Value*& slot = values[static_cast<std::size_t>(found - names.begin())];
    if (slot != nullptr) fail_template("{}() got two values for its parameter {}", callee, quote(name));
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (values[i] == nullptr) fail_template("{}() needs its parameter '{}'", callee, *(names.begin() + i));
  return values;
}

std::int64_t integer_argument(std::string_view callee, const Value* argument, std::int64_t otherwise) {
  if (argument == nullptr || argument->is_none()) return otherwise;
  if (!argument->is_integral()) fail_template("{}() needs an integer, but got {}", callee, type_name(*argument));
  return argument->integer();
}

}  // namespace weft::jinja
