#pragma once

// The checks in child processes: what crashes or hangs takes only its own check with it.

#include <string>
#include <vector>

#include "apps/cli/plugin_check/checks.h"

namespace weft::plugin_check {

struct PluginReport {
  std::string name, version;  // "" when the plugin did not load
  std::vector<std::string> subjects;
  std::vector<std::string> patterns;  // texts that were read
  std::vector<CheckRow> rows;
  bool passed() const;
};

// `seconds`: how long loading, and then each check, may take.
PluginReport check_plugin(const std::string& path, const Options& options, double seconds);

}  // namespace weft::plugin_check
