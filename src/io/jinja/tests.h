#pragma once

// Jinja's tests: `value is name(arguments)`.

#include <string_view>

#include "io/jinja/object.h"
#include "io/jinja/runtime.h"

namespace weft::jinja {

struct Test {
  std::string_view name;
  bool (*holds)(Runtime& runtime, const Value& value, const Arguments& arguments);
};

// Null when there is no such test.
const Test* find_test(std::string_view name);

}  // namespace weft::jinja
