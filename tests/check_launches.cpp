// check_launches DIR FILE
//
// Records the launches of CUDA kernels for the recorded vectors of DIR and the samples of ops, and writes them to FILE
// for weft_device_check. Exits with 3 if a result is not as recorded, or not the op's meaning.

#include <iostream>

#include "apps/cli/flags.h"
#include "apps/cli/verb.h"
#include "base/files.h"
#include "tests/launch_recorder.h"

namespace weft {
namespace {

int check_launches(const std::vector<std::string>& words) {
  Flags flags("check_launches", "Records launches of CUDA kernels.");
  std::string folder, file;
  flags.option("folder", folder, "Holds FAMILY.manifest.json and FAMILY.safetensors.", {.required = true});
  flags.option("file", file, "What to write.", {.required = true});
  if (const std::string help = flags.parse(words); !help.empty()) {
    std::cout << help;
    return 0;
  }
  std::vector<device_check::RecordedLaunch> launches = record_samples();
  for (const char* family : {"fused", "quant_kernels", "ir_ops", "quant_fp8", "quant_int8", "quant_mx", "rope"})
    for (device_check::RecordedLaunch& launch : record_family(folder, family)) launches.push_back(std::move(launch));
  const std::vector<std::byte> packed = device_check::pack_launches(launches);
  write_then_rename(file, packed);
  std::cout << fmt::format("{} launches, {} bytes\n", launches.size(), packed.size());
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  return weft::guarded(std::cerr, [&] { return weft::check_launches({argv + 1, argv + argc}); });
}
