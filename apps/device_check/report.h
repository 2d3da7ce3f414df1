#pragma once

// What was found on a device, as JSON and as tables. A number is there only where it was measured.

#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/driver_calls.h"

namespace weft::device_check {

enum class Outcome : std::uint8_t { passed, failed, not_run };

struct CheckedCase {
  std::string name;
  Outcome outcome = Outcome::not_run;
  std::string text;  // what the device said, what differs, or why it was not run
};

// Launches of one kernel.
struct KernelChecks {
  std::string kernel;
  int passed = 0;
  std::vector<CheckedCase> failed;
  int absent = 0;  // the code has no such kernel
};

// A part of the check, and how long it took.
struct Phase {
  std::string name;
  double seconds = 0;
};
// For all of them on a machine with a GPU.
inline constexpr double kSecondsAllowed = 480;

struct Timing {
  std::string what;
  std::int64_t rows = 0, columns = 0;
  double bytes = 0;                    // that it must move
  double target_share = 0;             // of the copy rate, that it is to reach; 0: none is set
  std::optional<double> microseconds;  // median; nothing where it was not measured
};

// "rms_norm, 128 x 4096".
std::string timing_label(const Timing& timing);

struct Report {
  std::string date;  // 2026-11-22
  std::string device;
  bool is_fake = false;
  cuda::DeviceFacts facts;
  std::string code;              // architectures
  std::string launches_problem;  // why no recorded launch ran
  std::vector<KernelChecks> kernels;
  std::vector<CheckedCase> designs;
  std::vector<CheckedCase> timed_launches;
  std::vector<CheckedCase> faults;
  std::string timings_problem;  // why nothing was measured
  // Of a copy within the device, what is read and what is written both counted.
  std::optional<double> copied_bytes_per_second;
  std::vector<Timing> timings;
  std::vector<Phase> phases;          // in their order
  std::vector<std::string> left_out;  // phases that were not asked for, or could not run any more
  std::string lost;  // the phase in which a kernel failed whose device did not come back, and what it says; "" for none
};

// Whether all that was asked for and could be checked was, and passed, on a GPU in the seconds allowed. A target that
// is missed fails nothing: it was set for one GPU.
bool is_good(const Report& report);

std::string json_text(const Report& report);
// Markdown.
std::string table_text(const Report& report);

}  // namespace weft::device_check
