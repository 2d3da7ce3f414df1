#pragma once

// Values of a template other than plain data: namespaces, loops, macros, functions. The rendering owns them.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/jinja/value.h"

namespace weft::jinja {

class Printer;
class Runtime;

// The arguments of a call, in source order.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  // Prints the object. An object without a reproducible text (Python would print an address) throws TemplateFailure.
  virtual void print(Printer& printer) const;
  // Nullopt if there is no such attribute.
  virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
  virtual bool is_callable() const { return false; }
  virtual Value call(Runtime& runtime, const Arguments& arguments);
};

// Returns the arguments of a call by parameter: element i belongs to `names[i]`, and is null if the call omits it.
// Throws TemplateFailure for too many arguments, an unknown or repeated name, or if one of the first `required`
// parameters is missing.
std::vector<const Value*> bind_arguments(std::string_view callee, const Arguments& arguments,
                                         std::initializer_list<std::string_view> names, std::size_t required = 0);

// The value of an argument that must be an integer or a boolean. `otherwise` replaces an absent argument or none.
std::int64_t integer_argument(std::string_view callee, const Value* argument, std::int64_t otherwise);

}  // namespace weft::jinja
