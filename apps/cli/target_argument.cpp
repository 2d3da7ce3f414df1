#include "apps/cli/target_argument.h"

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

std::optional<CpuFeatures> features_of(const std::string& target) {
  if (target.empty()) return std::nullopt;
  constexpr std::string_view kCpu = "cpu=";
  USER_CHECK(target.starts_with(kCpu), "[--target] must be cpu=FEATURES as in cpu=avx2, but is {}", quote(target));
  return cpu_features_from_text(target.substr(kCpu.size()), "--target");
}

}  // namespace

void TargetArgument::declare(Flags& flags) {
  flags.option("--target", given, "For a processor with these instruction sets, whatever this one has: cpu=avx2.");
}

std::shared_ptr<Context> TargetArgument::open_context(VerbCall& call) const {
  const std::optional<CpuFeatures> target = features_of(given);
  if (target) set_option(call.options, "cpu-features", cpu_features_text(*target), "--target");
  auto context = weft::open_context(call, target);
  const DeviceDescription& device = context->device;
  USER_CHECK(device.features <= device.host || context->options.tuning_budget == 0,
             "[--tuning-budget] what {} code takes cannot be measured here: this host has {}",
             cpu_features_text(device.features), cpu_features_text(device.host));
  return context;
}

}  // namespace weft
