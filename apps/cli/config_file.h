#pragma once

// --config FILE of `weft serve` and `weft run-batch`: flags in a file, as vLLM's --config.

#include <string>
#include <vector>

namespace weft {

// The words of a command line, with the flags of its file in place of --config FILE. A flag that the words have wins
// over that of the file. UserError for a file that has no flags in YAML or JSON.
std::vector<std::string> with_flags_of_config(std::vector<std::string> words);

}  // namespace weft
