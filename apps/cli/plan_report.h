#pragma once

// What `weft plan` prints: a compiled model in numbers, without its weights, and the rates that a machine's peak rates
// allow.

#include <string>
#include <vector>

#include "apps/cli/peak_rates.h"
#include "base/json.h"
#include "engine/compile/model_plan.h"

namespace weft {

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
  PeakRates peaks;
};

// Keys are stable, new ones may be added:
//   weft model architecture weights_from target graphs memory decode prompt peak_rates
Json plan_json(const PlanReport& report);

std::string plan_report_text(const PlanReport& report);

}  // namespace weft
