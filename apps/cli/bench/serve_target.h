#pragma once

// The server that `weft bench serve` is told to measure.

#include <string>
#include <utility>

#include "apps/cli/bench/serve.h"
#include "apps/cli/bench/serve_load.h"

namespace weft {

// NAME and VALUE of the value of a flag, without spaces around them. UserError where the separator or the name is
// missing.
std::pair<std::string, std::string> pair_of(const std::string& text, char separator, const char* flag);

// The fields of --header.
HttpFields header_fields(const BenchServeArguments& arguments);

// http://HOST:PORT/PREFIX or https://HOST:PORT/PREFIX of --base-url, or --host and --port. UserError for another URL.
LoadTarget given_target(const BenchServeArguments& arguments);

}  // namespace weft
