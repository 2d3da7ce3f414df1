#include "apps/device_check/report.h"

#include <algorithm>

#include <fmt/core.h>

namespace weft::device_check {
namespace {

constexpr const char* kNotMeasured = "not measured";

const char* outcome_text(Outcome outcome) {
  return outcome == Outcome::passed ? "passed" : outcome == Outcome::failed ? "failed" : "not run";
}

// -- JSON: the little that is needed, so that nothing but a compiler is

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') result += '\\';
    if (byte < 0x20) {
      result += fmt::format("\\u00{}{:x}", byte >> 4, static_cast<unsigned>(byte & 0xfu));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string number_or_null(const std::optional<double>& number) {
  return number ? fmt::format("{:.3f}", *number) : "null";
}

template <class T, class Text>
std::string array_text(const std::vector<T>& items, Text text) {
  std::string result = "[";
  for (const T& item : items) result += (result.size() > 1 ? ",\n    " : "\n    ") + text(item);
  return result + (items.empty() ? "]" : "\n  ]");
}

std::string case_json(const CheckedCase& checked) {
  return fmt::format("{{\"name\": {}, \"outcome\": {}, \"text\": {}}}", quoted(checked.name),
                     quoted(outcome_text(checked.outcome)), quoted(checked.text));
}

std::string kernel_json(const KernelChecks& checks) {
  return fmt::format("{{\"kernel\": {}, \"passed\": {}, \"absent\": {}, \"failed\": {}}}", quoted(checks.kernel),
                     checks.passed, checks.absent, array_text(checks.failed, case_json));
}

// What a timing takes at least, where its bytes go at the rate of a copy.
std::optional<double> floor_microseconds(const Report& report, const Timing& timing) {
  if (!report.copied_bytes_per_second) return std::nullopt;
  return timing.bytes / *report.copied_bytes_per_second * 1e6;
}

// Of the copy rate.
std::optional<double> share_of(const Report& report, const Timing& timing) {
  const std::optional<double> floor = floor_microseconds(report, timing);
  if (!timing.microseconds || !floor) return std::nullopt;
  return *floor / *timing.microseconds;
}

// "" where there is none.
std::string target_text(const Report& report, const Timing& timing) {
  if (timing.target_share == 0) return "";
  const std::optional<double> share = share_of(report, timing);
  return !share ? kNotMeasured : *share >= timing.target_share ? "met" : "missed";
}

std::string timing_json(const Report& report, const Timing& timing) {
  return fmt::format(
      "{{\"what\": {}, \"rows\": {}, \"columns\": {}, \"bytes\": {:.0f}, \"floor_microseconds\": {}, "
      "\"microseconds\": {}, \"target_share\": {:.2f}, \"target\": {}}}",
      quoted(timing.what), timing.rows, timing.columns, timing.bytes,
      number_or_null(floor_microseconds(report, timing)), number_or_null(timing.microseconds), timing.target_share,
      quoted(target_text(report, timing)));
}

std::string phase_json(const Phase& phase) {
  return fmt::format("{{\"name\": {}, \"seconds\": {:.3f}}}", quoted(phase.name), phase.seconds);
}

double seconds_of(const Report& report) {
  double seconds = 0;
  for (const Phase& phase : report.phases) seconds += phase.seconds;
  return seconds;
}

// -- tables

// In percent.
std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f} %", 100 * *share) : kNotMeasured;
}

// Of a column of the table.
std::string judged_target(const Report& report, const Timing& timing) {
  const std::string text = target_text(report, timing);
  return text.empty() ? " |" : fmt::format(" {:.0f} %: {} |", 100 * timing.target_share, text);
}

std::string microseconds_text(const std::optional<double>& microseconds) {
  return microseconds ? fmt::format("{:.2f}", *microseconds) : kNotMeasured;
}

std::string timings_table(const Report& report) {
  std::string text = fmt::format(
      "Copy within the device: {}{}\n\n| kernel | rows x columns | MB | at the copy rate, us | us | of the copy rate "
      "| target |\n"
      "|---|--:|--:|--:|--:|--:|---|\n",
      report.copied_bytes_per_second ? fmt::format("{:.0f} GB/s", *report.copied_bytes_per_second * 1e-9)
                                     : kNotMeasured,
      report.timings_problem.empty() ? "" : fmt::format(" ({})", report.timings_problem));
  for (const Timing& timing : report.timings)
    text += fmt::format("| {} | {} x {} | {:.1f} | {} | {} | {} |{}\n", timing.what, timing.rows, timing.columns,
                        timing.bytes * 1e-6, microseconds_text(floor_microseconds(report, timing)),
                        microseconds_text(timing.microseconds), share_text(share_of(report, timing)),
                        judged_target(report, timing));
  return text;
}

std::string kernels_table(const Report& report) {
  if (!report.launches_problem.empty()) return "Recorded launches: not run, " + report.launches_problem + "\n";
  int passed = 0, absent = 0, kernels = 0;
  std::string failures;
  for (const KernelChecks& checks : report.kernels) {
    passed += checks.passed;
    absent += checks.absent;
    kernels += checks.passed > 0 || !checks.failed.empty() ? 1 : 0;
    for (const CheckedCase& failed : checks.failed)
      failures += fmt::format("* FAILED {}, {}: {}\n", checks.kernel, failed.name, failed.text);
  }
  const auto failed = std::count(failures.begin(), failures.end(), '\n');
  return fmt::format("Recorded launches: {} passed, {} failed, {} of kernels that the code is without; {} kernels\n{}",
                     passed, failed, absent, kernels, failures);
}

std::string timed_launches_text(const Report& report) {
  std::string failures;
  int failed = 0;
  for (const CheckedCase& checked : report.timed_launches) {
    if (checked.outcome == Outcome::passed) continue;
    failures += fmt::format("* FAILED {}: {}\n", checked.name, checked.text);
    ++failed;
  }
  return fmt::format("Timed launches, each once at a small size: {} in all, {} failed\n{}",
                     report.timed_launches.size(), failed, failures);
}

std::string left_out_text(const Report& report) {
  std::string text;
  for (const std::string& phase : report.left_out) text += (text.empty() ? "Not run: " : ", ") + phase;
  if (!text.empty()) text += "\n";
  return report.lost.empty() ? text : text + fmt::format("FAILED, the device is lost: {}\n", report.lost);
}

std::string phases_text(const Report& report) {
  std::string parts;
  for (const Phase& phase : report.phases) parts += fmt::format("; {} {:.1f}", phase.name, phase.seconds);
  const bool is_late = !report.is_fake && seconds_of(report) > kSecondsAllowed;
  return fmt::format("Seconds: {:.1f} in all, {:.0f} allowed on a GPU{}{}\n", seconds_of(report), kSecondsAllowed,
                     is_late ? ": FAILED" : "", parts) +
         left_out_text(report);
}

std::string cases_table(const char* heading, const std::vector<CheckedCase>& cases) {
  std::string text = fmt::format("| {} | outcome | message |\n|---|---|---|\n", heading);
  for (const CheckedCase& checked : cases) {
    std::string said = checked.text;
    std::replace(said.begin(), said.end(), '|', '/');
    std::replace(said.begin(), said.end(), '\n', ' ');
    text += fmt::format("| {} | {} | {} |\n", checked.name, outcome_text(checked.outcome), said);
  }
  return text;
}

std::string device_text(const Report& report) {
  if (report.is_fake) return report.device + ", a fake device: kernels ran in the emulator";
  return fmt::format("{}: {}, compute capability {}.{}, {} multiprocessors, {} bytes", report.device, report.facts.name,
                     report.facts.compute_capability / 10, report.facts.compute_capability % 10,
                     report.facts.multiprocessors, report.facts.memory_bytes);
}

}  // namespace

std::string timing_label(const Timing& timing) {
  return fmt::format("{}, {} x {}", timing.what, timing.rows, timing.columns);
}

bool is_good(const Report& report) {
  const bool kernels_passed = std::all_of(report.kernels.begin(), report.kernels.end(),
                                          [](const auto& one) { return one.failed.empty() && one.absent == 0; });
  const auto none_failed = [](const std::vector<CheckedCase>& cases) {
    return std::none_of(cases.begin(), cases.end(), [](const auto& one) { return one.outcome == Outcome::failed; });
  };
  // The emulator has all the time it needs.
  const bool is_in_time = report.is_fake || seconds_of(report) <= kSecondsAllowed;
  const bool is_measured = report.is_fake || report.timings_problem.empty();
  return report.lost.empty() && kernels_passed && none_failed(report.designs) && none_failed(report.timed_launches) &&
         none_failed(report.faults) && is_measured && is_in_time && report.launches_problem.empty();
}

std::string json_text(const Report& report) {
  std::string text = "{\n";
  const auto add = [&](const char* name, const std::string& value, const char* end = ",\n") {
    text += fmt::format("  \"{}\": {}{}", name, value, end);
  };
  add("date", quoted(report.date));
  add("device", quoted(report.device));
  add("is_fake", report.is_fake ? "true" : "false");
  add("name", quoted(report.facts.name));
  add("compute_capability", fmt::format("{}", report.facts.compute_capability));
  add("multiprocessors", fmt::format("{}", report.facts.multiprocessors));
  add("memory_bytes", fmt::format("{}", report.facts.memory_bytes));
  add("code", quoted(report.code));
  add("good", is_good(report) ? "true" : "false");
  add("launches_problem", quoted(report.launches_problem));
  add("lost", quoted(report.lost));
  add("launches", array_text(report.kernels, kernel_json));
  add("designs", array_text(report.designs, case_json));
  add("timed_launches", array_text(report.timed_launches, case_json));
  add("faults", array_text(report.faults, case_json));
  add("timings_problem", quoted(report.timings_problem));
  add("copied_bytes_per_second", number_or_null(report.copied_bytes_per_second));
  add("timings", array_text(report.timings, [&](const Timing& timing) { return timing_json(report, timing); }));
  add("phases", array_text(report.phases, phase_json));
  add("seconds", number_or_null(seconds_of(report)));
  add("seconds_allowed", number_or_null(kSecondsAllowed), "\n");
  return text + "}\n";
}

std::string table_text(const Report& report) {
  return fmt::format("`weft_device_check`, {}, {}. Device code: {}.\n\n{}\n{}\n{}\n{}\n{}\n{}", report.date,
                     device_text(report), report.code, phases_text(report), timings_table(report),
                     kernels_table(report), timed_launches_text(report), cases_table("designs", report.designs),
                     cases_table("fault", report.faults));
}

}  // namespace weft::device_check
