#pragma once

// The process environment as a value. Functions that need a variable take a lookup, so that a test can pass its own and
// no function reads the real environment without its caller's knowledge.

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weft {

// The value of a variable, or nullopt if it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// Reads the real environment at the time of each call.
EnvironmentLookup process_environment();

// The names in the real environment that begin with `prefix`, sorted.
std::vector<std::string> process_environment_names(const std::string& prefix);

}  // namespace weft
