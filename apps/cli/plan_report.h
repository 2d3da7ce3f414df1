#pragma once

// What `weft plan` prints: a compiled model in numbers, without its weights, and the rates that a machine's peak rates
// allow.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/compile/model_plan.h"

namespace weft {

// A peak rate, and its source: "given", "measured", or why there is none.
struct PeakRate {
  std::optional<double> per_second;
  std::string source;
};

struct PlanRoof {
  PeakRate bytes;
  PeakRate operations;
  // How many times as fast operands of 16 and of at most 8 bits may be multiplied. The rate that is measured is that of
  // f32; a vector instruction takes 2 or 4 times as many of these.
  double speedup_of_16_bits = 1;
  double speedup_of_8_bits = 1;

  // The tokens per second of a step at the peak rates, with all bytes from memory; nullopt where no rate is known. A
  // rate that is not known limits nothing.
  std::optional<double> tokens_per_second(const PlannedStep& step) const;
  // What limits the step: "bandwidth", "operations", or "" where no rate is known.
  std::string limit_of(const PlannedStep& step) const;
};

struct PlanReport {
  std::string version;
  std::string model;
  std::string architecture;
  std::string weights_from;  // "config" or "checkpoint": where the types of the weights come from
  DeviceDescription device;
  std::int64_t context_length = 0;

  std::vector<CompileRecord> records;  // empty in eager mode
  PlannedMemory memory;
  PlannedStep decode, prompt;
  PlanRoof roof;
};

// Keys are stable, new ones may be added:
//   weft model architecture weights_from target graphs memory decode prompt roof
Json plan_json(const PlanReport& report);

std::string plan_report_text(const PlanReport& report);

}  // namespace weft
