#include "builtin/default_priorities.h"

namespace weft {
namespace {

std::vector<std::string> providers_of(DeviceType device) {
  switch (device) {
    case DeviceType::cpu:
      return {"cpu"};
    case DeviceType::cuda:
      return {"cublaslt", "cuda_mma", "cuda"};
    case DeviceType::fake_cuda:
      // CPU kernels replace missing device kernels, because the host can read the memory of the fake device.
      return {"cublaslt", "cuda_mma", "cuda_reference", "cuda", "cpu"};
  }
  return {};
}

}  // namespace

PriorityLists default_priorities(DeviceType device) { return PriorityLists(providers_of(device)); }

}  // namespace weft
