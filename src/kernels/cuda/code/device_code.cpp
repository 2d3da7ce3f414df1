#include "kernels/cuda/code/device_code.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/code/kernel_table.h"

namespace weft::cuda {
namespace {

constexpr const char* kWithout = "this program was built without -DWEFT_CUDA=ON";

}  // namespace

std::span<const std::byte> device_code_of(std::string_view kernel) {
  USER_CHECK(!device_code().empty(), "[{}] is wanted for a GPU, but {}", kernel, kWithout);
  const auto files = emulated_kernels();
  CHECK(files.size() == device_code().size(), "[cuda] {} files of kernels, but device code of {}", files.size(),
        device_code().size());
  for (std::size_t i = 0; i < files.size(); ++i)
    for (const EmulatedKernel& found : files[i])
      if (kernel == found.name) return device_code()[i].image;
  CHECK(false, "[cuda] no device code has a kernel {}", kernel);
}

Verdict has_device_code(int compute_capability) {
  const std::span<const int> made_for = device_code_architectures();
  const bool has_machine_code = std::any_of(made_for.begin(), made_for.end(), [&](int architecture) {
    return architecture / 10 == compute_capability / 10 && architecture <= compute_capability;
  });
  if (has_machine_code || (!made_for.empty() && made_for.back() <= compute_capability)) return Verdict::yes();
  return Verdict::no(
      fmt::format("no device code for sm_{}; this program has {}", compute_capability, device_code_text()));
}

Verdict driver_reads_device_code(int driver_version, bool has_code) {
  if (!has_code || driver_version == 0 || driver_version >= kLeastDriverOfCode) return Verdict::yes();
  const auto text = [](int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); };
  return Verdict::no(fmt::format(
      "the CUDA driver must be for CUDA {} or newer to read this program's device code, which is compressed, "
      "but is for {}",
      text(kLeastDriverOfCode), text(driver_version)));
}

std::string device_code_text() {
  if (device_code().empty()) return fmt::format("none: {}", kWithout);
  std::string text;
  for (const int architecture : device_code_architectures()) text += fmt::format("sm_{}, ", architecture);
  return text + fmt::format("PTX of compute_{}", device_code_architectures().back());
}

}  // namespace weft::cuda
