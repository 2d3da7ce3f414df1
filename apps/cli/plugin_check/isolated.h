#pragma once

// Runs the checks in child processes, so that a crash or a hang ends only its own check.

#include <string>
#include <vector>

#include "apps/cli/plugin_check/checks.h"

namespace weft::plugin_check {

struct PluginReport {
  std::string name, version;  // "" if the plugin did not load
  std::vector<std::string> subjects;
  std::vector<std::string> patterns;  // what each of its patterns was tried on
  std::vector<CheckRow> rows;
  bool passed() const;
};

// `seconds` is the time limit for loading, and then for each check.
PluginReport check_plugin(const std::string& path, const Options& options, double seconds);

}  // namespace weft::plugin_check
