#pragma once

// The generic tests for everything that one plugin adds.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/plugin_check/guarded_memory.h"
#include "compiler/context.h"
#include "plugin/plugin.h"

namespace weft::plugin_check {

struct CheckRow {
  std::string subject;  // "op soft_cap", "kernel rms_norm@mine", "pass drop_unit_scale"
  std::string check;
  bool passed = false;
  std::string detail;
};
using ReportCheck = std::function<void(const CheckRow&)>;

class PluginChecks {
 public:
  // Loads the plugin into a separate Context. Throws UserError if the plugin does not load or does not fit.
  PluginChecks(const std::string& path, Options options, FaultRecord& record);

  const Plugin& plugin() const { return plugin_; }
  // What each of its patterns was tried on.
  const std::vector<std::string>& patterns() const { return patterns_; }
  // The order is fixed: ops, kernels, passes.
  const std::vector<std::string>& subjects() const { return subjects_; }
  // Reports a row for each check of the subject. A check that throws an Error is a failed row.
  void run(std::size_t subject, const ReportCheck& report);

 private:
  void check_op(const Op& op, const ReportCheck& report) const;
  void check_kernel(const Kernel& kernel, const ReportCheck& report);
  void check_pass(const PassRow& pass, const ReportCheck& report);

  Plugin plugin_;
  FaultRecord& record_;
  std::shared_ptr<Context> context_;
  std::vector<std::string> patterns_, subjects_;
  std::vector<std::function<void(const ReportCheck&)>> bodies_;
};

}  // namespace weft::plugin_check
