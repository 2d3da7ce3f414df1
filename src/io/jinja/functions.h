#pragma once

// The functions that each template can call (range, dict, namespace, cycler, joiner, raise_exception, strftime_now),
// and the namespace, the only value that a template can change.

#include <string>
#include <string_view>

#include "io/jinja/object.h"
#include "io/jinja/runtime.h"

namespace weft::jinja {

// Undefined if there is no such function.
Value find_function(Runtime& runtime, std::string_view name);

class Namespace : public Object {
 public:
  std::string type_name() const override { return "Namespace"; }
  void print(Printer& printer) const override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  // Throws TemplateFailure for a name that begins with an underscore.
  void set(const std::string& name, Value value);

 private:
  Dict attributes_;
};

}  // namespace weft::jinja
