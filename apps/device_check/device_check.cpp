#include "apps/device_check/device_check.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include <fmt/core.h>

#include "apps/device_check/designs.h"
#include "apps/device_check/faults.h"
#include "apps/device_check/phases.h"
#include "apps/device_check/run_launch.h"
#include "apps/device_check/timings.h"
#include "base/error.h"
#include "kernels/cuda/code/device_code.h"

namespace weft::device_check {
namespace {

std::string date_text() {
  const std::time_t now = std::time(nullptr);
  char text[11] = "";
  std::tm parts = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &parts));
  return text;
}

void check_launch(Target& target, const RecordedLaunch& launch, Mathematics mathematics, KernelChecks& checks) {
  std::string text;
  try {
    const std::optional<std::string> difference = run_launch(target, launch, mathematics);
    if (!difference) {
      ++checks.absent;
      return;
    }
    text = *difference;
  } catch (const Error& error) {
    text = error.what();
    // A kernel that failed took its device with it.
    target.mend();
  }
  if (text.empty()) {
    ++checks.passed;
  } else {
    checks.failed.push_back({launch.name, Outcome::failed, text});
  }
}

std::vector<KernelChecks> check_launches(Target& target, std::span<const RecordedLaunch> launches,
                                         const Selection& selection) {
  std::map<std::string, KernelChecks> by_kernel;
  std::set<std::string> launched;
  for (const RecordedLaunch& launch : launches) {
    if (launch.kernel.find(selection.name) == std::string::npos) continue;
    if (selection.one_each && !launched.insert(launch.kernel).second) continue;
    if (!target.lost().empty()) break;
    for (const Mathematics mathematics : {Mathematics::reference, Mathematics::device}) {
      const std::string kernel = kernel_name(launch, mathematics);
      if (mathematics == Mathematics::device && kernel == launch.kernel) continue;  // there is one alone
      KernelChecks& checks = by_kernel[kernel];
      checks.kernel = kernel;
      check_launch(target, launch, mathematics, checks);
      if (!target.lost().empty()) break;
    }
  }
  std::vector<KernelChecks> all;
  for (auto& [kernel, checks] : by_kernel) all.push_back(std::move(checks));
  return all;
}

void take_times(Target& target, const Selection& selection, Report& report) {
  if (target.is_fake()) {
    report.timings = planned_timings();
    report.timings_problem = "a fake device has no clock";
    return;
  }
  for (const CheckedCase& launch : report.timed_launches) {
    if (launch.outcome == Outcome::passed) continue;
    report.timings = planned_timings();
    report.timings_problem = fmt::format("{} failed at a small size", launch.name);
    return;
  }
  try {
    measure(target, selection.name, report);
  } catch (const Error& error) {
    report.timings_problem = error.what();
    target.mend();
  }
}

}  // namespace

bool Selection::wants(std::string_view part) const {
  return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
}

Report check_device(Target& target, std::span<const RecordedLaunch> launches, const std::string& launches_problem,
                    const Selection& selection) {
  Report report{.date = date_text(),
                .device = target.driver().device_name(target.device()),
                .is_fake = target.is_fake(),
                .facts = target.driver().facts(target.device()),
                .code = target.is_fake() ? "none needed" : cuda::device_code_text(),
                .launches_problem = selection.wants("launches") ? launches_problem : ""};
  const auto run = [&](const char* part, const char* phase, auto work) {
    if (!selection.wants(part) || !report.lost.empty()) {
      report.left_out.push_back(phase);
      return;
    }
    run_phase(report.phases, phase, work);
  };
  const auto run_unless_lost = [&](const char* part, const char* phase, auto work) {
    run(part, phase, work);
    if (report.lost.empty() && !target.lost().empty()) report.lost = fmt::format("{}: {}", phase, target.lost());
  };
  run_unless_lost("launches", "recorded launches",
                  [&] { report.kernels = check_launches(target, launches, selection); });
  run_unless_lost("designs", "designs", [&] { report.designs = check_designs(target); });
  run_unless_lost("once", "timed launches once", [&] { report.timed_launches = check_timed_launches(target); });
  run_unless_lost("timings", "timings", [&] { take_times(target, selection, report); });
  run_unless_lost("faults", "faults", [&] { report.faults = check_faults(target); });
  run("kernel_fault", "kernel fault",
      [&] { report.faults.push_back(check_kernel_fault(target, KernelFault::launched)); });
  run("graph_fault", "graph fault",
      [&] { report.faults.push_back(check_kernel_fault(target, KernelFault::captured)); });
  return report;
}

}  // namespace weft::device_check
