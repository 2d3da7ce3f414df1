#pragma once

// The results of the checks of a device, as JSON and as tables. A number is present only if it was measured.

#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/driver_calls.h"

namespace weft::device_check {

enum class Outcome : std::uint8_t { passed, failed, not_run };

struct CheckedCase {
  std::string name;
  Outcome outcome = Outcome::not_run;
  std::string text;  // the device's message, the difference, or why it was not run
};

// The results of the launches of one kernel.
struct KernelChecks {
  std::string kernel;
  int passed = 0;
  std::vector<CheckedCase> failed;
  int absent = 0;  // launches whose kernel the code does not have
};

// A part of the check, and its time.
struct Phase {
  std::string name;
  double seconds = 0;
};
// The time limit for all phases together, on a machine with a GPU.
inline constexpr double kSecondsAllowed = 480;

struct Timing {
  std::string what;
  std::int64_t rows = 0, columns = 0;
  double bytes = 0;                    // bytes that it must move
  double target_share = 0;             // target as a share of the copy rate; 0: no target
  std::optional<double> microseconds;  // median; nothing if not measured
};

// Returns a label such as "rms_norm, 128 x 4096".
std::string timing_label(const Timing& timing);

struct Report {
  std::string date;  // 2026-11-22
  std::string device;
  bool is_fake = false;
  cuda::DeviceFacts facts;
  std::string code;              // its architectures
  std::string launches_problem;  // why no recorded launch ran, if none did
  std::vector<KernelChecks> kernels;
  std::vector<CheckedCase> designs;
  std::vector<CheckedCase> timed_launches;
  std::vector<CheckedCase> faults;
  std::string timings_problem;  // why nothing was measured, if nothing was
  // The rate of a copy within the device; bytes that are read and bytes that are written both count.
  std::optional<double> copied_bytes_per_second;
  std::vector<Timing> timings;
  std::vector<Phase> phases;          // in the order of their runs
  std::vector<std::string> left_out;  // phases that were not selected, or could no longer run
  std::string lost;  // if a failed kernel made the device unusable: the phase and the device's message; else ""
};

// Returns whether everything that was selected and could be checked was checked and passed, on a GPU, within the time
// limit. A missed timing target is not a failure, because the targets were set for one GPU.
bool is_good(const Report& report);

std::string json_text(const Report& report);
// Returns the report as Markdown.
std::string table_text(const Report& report);

}  // namespace weft::device_check
