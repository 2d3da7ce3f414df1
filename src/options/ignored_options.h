#pragma once

// Keys of vLLM's compilation config that nothing here reads. They are accepted with any value, so that a pasted config
// works, and are reported as options without effect.

#include <span>
#include <string_view>

namespace weft {

struct IgnoredOption {
  std::string_view name;
  std::string_view sentence;  // why it has no effect
};

std::span<const IgnoredOption> ignored_options();

// The row for a name in any user spelling, as find_option; nullptr if there is none.
const IgnoredOption* find_ignored_option(std::string_view name);

}  // namespace weft
