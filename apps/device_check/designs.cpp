#include "apps/device_check/designs.h"

#include <algorithm>

#include <fmt/core.h>

#include "apps/device_check/device_memory.h"
#include "base/error.h"
#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"

namespace weft::device_check {

using namespace cuda;

namespace {

constexpr std::uint32_t kGroup = 128;

struct Size {
  std::uint32_t rows, columns;
};

struct Written {
  std::byte *codes, *scales;
};

Written run(Target& target, DeviceMemory& memory, const void* x, Size size, SiluAndMulDesign design) {
  const std::size_t elements = std::size_t{size.rows} * size.columns;
  const Written written{static_cast<std::byte*>(memory.add(elements)),
                        static_cast<std::byte*>(memory.add(elements / kGroup * sizeof(float)))};
  const SiluAndMulPerBlockQuant kernel{.design = design, .mathematics = cuda::Mathematics::reference};
  SiluAndMulPerBlockQuantArguments arguments{
      .x = x,
      .codes = written.codes,
      .places = {reinterpret_cast<float*>(written.scales), size.columns / kGroup, 1},
      .rows = size.rows,
      .columns = size.columns};
  const LaunchShape shape = kernel.plan(arguments);
  const std::optional<Function> function = target.find(kernel.kernel_name(), sizeof arguments);
  if (!function) fail_device("[device check] the code has no kernel {}", kernel.kernel_name());
  target.driver().launch(target.stream(), *function,
                         {.blocks = {shape.blocks, shape.block_rows, 1}, .threads = {shape.threads, 1, 1}}, arguments);
  return written;
}

// "" or where two places of the device first differ.
std::string difference(Target& target, const char* what, const std::byte* one, const std::byte* other,
                       std::size_t bytes) {
  constexpr std::size_t kAtOnce = std::size_t{64} << 20;
  std::vector<std::byte> a(std::min(bytes, kAtOnce)), b(a.size());
  for (std::size_t begin = 0; begin < bytes; begin += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, bytes - begin);
    target.driver().copy(target.stream(), a.data(), one + begin, count);
    target.driver().copy(target.stream(), b.data(), other + begin, count);
    target.driver().synchronize(target.stream());
    const auto end = a.begin() + static_cast<std::ptrdiff_t>(count);
    if (const auto [at, there] = std::mismatch(a.begin(), end, b.begin()); at != end)
      return fmt::format("byte {} of the {} differs", begin + static_cast<std::size_t>(at - a.begin()), what);
  }
  return "";
}

std::string difference_of_designs(Target& target, Size size) {
  const std::size_t elements = std::size_t{size.rows} * size.columns;
  DeviceMemory memory(target);
  const void* x = memory.add_numbers(2 * elements);
  const Written fast = run(target, memory, x, size, SiluAndMulDesign::fast);
  const Written tree = run(target, memory, x, size, SiluAndMulDesign::tree);
  const std::string text = difference(target, "codes", fast.codes, tree.codes, elements);
  return text.empty() ? difference(target, "scales", fast.scales, tree.scales, elements / kGroup * sizeof(float))
                      : text;
}

}  // namespace

std::vector<CheckedCase> check_designs(Target& target) {
  std::vector<Size> sizes = {{37, 1152}};
  if (!target.is_fake()) sizes.insert(sizes.end(), {{1024, 14336}, {70000, 128}, {3, 65535 * kGroup}, {150000, 14336}});
  std::vector<CheckedCase> results;
  for (const Size size : sizes) {
    CheckedCase result{.name = fmt::format("fast and tree design, {} x {}", size.rows, size.columns)};
    // x, codes and scales twice, in bytes.
    const double wanted = 6.1 * size.rows * size.columns;
    if (const double free = static_cast<double>(target.driver().memory(target.device()).free); wanted > free) {
      result.text = fmt::format("wants {:.0f} bytes of {:.0f} free", wanted, free);
    } else {
      try {
        result.text = difference_of_designs(target, size);
      } catch (const Error& error) {
        result.text = error.what();
        target.mend();
      }
      result.outcome = result.text.empty() ? Outcome::passed : Outcome::failed;
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace weft::device_check
