#pragma once

// What a template can hold besides plain data: namespaces, loops, macros, functions. The rendering owns them.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/jinja/value.h"

namespace weft::jinja {

class Printer;
class Runtime;

// The arguments of a call, in the order written.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  // Writes what printing the object gives. An object without a text that is the same everywhere (Python would print
  // an address) throws TemplateFailure.
  virtual void print(Printer& printer) const;
  // Nothing when there is no such attribute.
  virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
  virtual bool is_callable() const { return false; }
  virtual Value call(Runtime& runtime, const Arguments& arguments);
};

// The arguments of one call by parameter: `values[i]` belongs to `names[i]`, null where the call gives none. Throws
// TemplateFailure for an argument too many, an unknown or doubled name, or a missing one of the first `required`.
std::vector<const Value*> bind_arguments(std::string_view callee, const Arguments& arguments,
                                         std::initializer_list<std::string_view> names, std::size_t required = 0);

// An argument that must be an integer (a boolean counts), with the value that stands for an absent one or none.
std::int64_t integer_argument(std::string_view callee, const Value* argument, std::int64_t otherwise);

}  // namespace weft::jinja
