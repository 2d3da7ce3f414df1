#pragma once

// The peak rates of a machine, and what they allow a step of a model.

#include <optional>
#include <string>

#include "apps/cli/measured_peaks.h"
#include "base/json.h"
#include "compiler/context.h"
#include "compiler/step_work.h"

namespace weft {

// A peak rate, and its source: "given", "measured", or why there is none.
struct PeakRate {
  std::optional<double> per_second;
  std::string source;
};

// Of bytes that are read from memory, and of operations by the bits of their operands.
struct PeakRates {
  PeakRate bytes;
  PeakRate operations;  // of operands with more than 16 bits
  PeakRate operations_of_16_bits, operations_of_8_bits;

  // The least seconds for work with all bytes from memory; 0 where no rate is known. A rate that is not known limits
  // nothing.
  double seconds(const StepWork& work) const;
  // What limits the work: "bandwidth", "operations", or "" where no rate is known.
  std::string limit_of(const StepWork& work) const;
};

// Measures the rates that are not given. Where they cannot be measured, because the target is no processor or not this
// one, they stay unknown.
PeakRates peak_rates(const Context& context, std::optional<double> bytes = std::nullopt,
                     std::optional<double> operations = std::nullopt);

// null for nothing.
Json optional_json(const std::optional<double>& number);
Json peak_rates_json(const PeakRates& rates);
std::string peak_rates_text(const PeakRates& rates);

}  // namespace weft
