#include "builtin/default_priorities.h"

namespace weft {
namespace {

std::vector<std::string> providers_of(DeviceType device) {
  switch (device) {
    case DeviceType::cpu:
      return {"cpu"};
    case DeviceType::cuda:
      return {"cublaslt", "cuda"};
    case DeviceType::fake_cuda:
      // The host stands in where there is no kernel: it can read its memory.
      return {"cublaslt", "cuda_house", "cuda", "cpu"};
  }
  return {};
}

}  // namespace

PriorityLists default_priorities(const KernelRegistry& kernels, DeviceType device) {
  PriorityLists priorities(providers_of(device));
  if (device == DeviceType::cpu) return priorities;
  // What stands ahead of these for the ops that it has kernels of.
  for (const std::string& op : kernels.ops())
    if (kernels.find(op, "cuda_mma") != nullptr) priorities.add_defaults(op, {"cuda_mma"});
  return priorities;
}

}  // namespace weft
