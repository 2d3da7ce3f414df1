// Any bytes are a Plan that prints, that verify_plan gives a verdict on and that is written and read back to the same,
// or a PlanFileError.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan_file.h"

namespace {

using namespace weft;

std::optional<Plan> read(std::span<const std::byte> bytes, const KernelLookup& find_kernel) {
  try {
    return plan_from_bytes(bytes, find_kernel);
  } catch (const PlanFileError&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::map<std::pair<std::string, std::string>, Kernel> kernels;
  const KernelLookup find_kernel = [&](const std::string& op, const std::string& provider) {
    return &kernels.try_emplace({op, provider}, Kernel{.op = op, .provider = provider}).first->second;
  };
  const std::optional<Plan> plan = read(std::as_bytes(std::span(data, size)), find_kernel);
  if (!plan) return 0;
  const std::vector<std::byte> bytes = plan_bytes(*plan);
  const std::optional<Plan> again = read(bytes, find_kernel);
  if (!again || plan_text(*again) != plan_text(*plan) || plan_bytes(*again) != bytes) std::abort();
  try {
    verify_plan(*plan);
  } catch (const Error&) {
  }
  return 0;
}
