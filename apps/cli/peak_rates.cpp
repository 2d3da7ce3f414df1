#include "apps/cli/peak_rates.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace weft {
namespace {

double seconds_of(std::int64_t amount, const PeakRate& rate) {
  return rate.per_second ? static_cast<double>(amount) / *rate.per_second : 0;
}

double byte_seconds(const StepWork& work, const PeakRates& rates) {
  return seconds_of(work.least_bytes(), rates.bytes);
}

double operation_seconds(const StepWork& work, const PeakRates& rates) {
  const std::int64_t others = work.operations() - work.operations_of_16_bits - work.operations_of_8_bits;
  return seconds_of(others, rates.operations) + seconds_of(work.operations_of_16_bits, rates.operations_of_16_bits) +
         seconds_of(work.operations_of_8_bits, rates.operations_of_8_bits);
}

// Returns why the peak rates of the target cannot be measured here; "" where they can.
std::string why_not_measured(const DeviceDescription& device) {
  if (device.id.type != DeviceType::cpu)
    return fmt::format("{} is not measured: give --bandwidth and --flops", device_text(device.id));
  if (device.features > device.host)
    return fmt::format("this host has {}: give --bandwidth and --flops", cpu_features_text(device.host));
  return "";
}

Json rate_json(const PeakRate& rate) {
  return {{"per_second", optional_json(rate.per_second)}, {"source", rate.source}};
}

std::string rate_text(const PeakRate& rate, const char* unit) {
  return rate.per_second ? fmt::format("{:.1f} {} ({})", *rate.per_second / 1e9, unit, rate.source)
                         : fmt::format("{} not known ({})", unit, rate.source);
}

double speedup(const PeakRate& rate, const PeakRates& rates) {
  return rate.per_second && rates.operations.per_second ? *rate.per_second / *rates.operations.per_second : 1;
}

}  // namespace

double PeakRates::seconds(const StepWork& work) const {
  return std::max(byte_seconds(work, *this), operation_seconds(work, *this));
}

std::string PeakRates::limit_of(const StepWork& work) const {
  if (seconds(work) == 0) return "";
  return byte_seconds(work, *this) >= operation_seconds(work, *this) ? "bandwidth" : "operations";
}

PeakRates peak_rates(const Context& context, std::optional<double> bytes, std::optional<double> operations) {
  PeakRates rates{.bytes = {bytes, "given"},
                  .operations = {operations, "given"},
                  .operations_of_16_bits = {operations, "given"},
                  .operations_of_8_bits = {operations, "given"}};
  if (bytes && operations) return rates;
  const std::string problem = why_not_measured(context.device);
  std::optional<MeasuredPeaks> measured;
  if (problem.empty()) {
    const auto clock = [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
    measured = measure_peaks(*context.threads, context.device.features, clock);
  }
  const auto complete = [&](PeakRate& rate, double MeasuredPeaks::*member) {
    if (rate.per_second) return;
    if (measured) rate.per_second = (*measured).*member;
    rate.source = measured ? "measured" : problem;
  };
  complete(rates.bytes, &MeasuredPeaks::read_bytes);
  complete(rates.operations, &MeasuredPeaks::operations);
  complete(rates.operations_of_16_bits, &MeasuredPeaks::operations_of_16_bits);
  complete(rates.operations_of_8_bits, &MeasuredPeaks::operations_of_8_bits);
  return rates;
}

Json optional_json(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

Json peak_rates_json(const PeakRates& rates) {
  return {{"bytes", rate_json(rates.bytes)},
          {"operations", rate_json(rates.operations)},
          {"operations_of_16_bits", rate_json(rates.operations_of_16_bits)},
          {"operations_of_8_bits", rate_json(rates.operations_of_8_bits)},
          {"speedup_of_16_bits", speedup(rates.operations_of_16_bits, rates)},
          {"speedup_of_8_bits", speedup(rates.operations_of_8_bits, rates)}};
}

std::string peak_rates_text(const PeakRates& rates) {
  std::string text = rate_text(rates.bytes, "GB/s") + ", " + rate_text(rates.operations, "GFLOP/s");
  if (rates.operations_of_16_bits.per_second && rates.operations_of_8_bits.per_second)
    text += fmt::format("; {:.1f} for operands of 16 bits, {:.1f} for 8 bits",
                        *rates.operations_of_16_bits.per_second / 1e9, *rates.operations_of_8_bits.per_second / 1e9);
  return text;
}

}  // namespace weft
