#pragma once

// The default order of providers for each device; --ir-op-priority puts others first.

#include "kernels/kernel.h"
#include "kernels/select.h"

namespace weft {

// The lists depend on the device and are the same for eager and compiled mode; `native` is always last.
//
//   cuda       kernels with the device's own math (provider cuda), which need about a third of the instructions
//   fake_cuda  kernels with the reference math (cuda_reference) if both forms exist, so that results have the
//              host's bits; with --ir-op-priority.OP=cuda the emulator runs the kernel that a GPU runs
//
// Both forms are batch-invariant, and no choice between them depends on a row count, so --batch-invariant does not
// change the form. cublaslt and cuda_mma are before both for the ops that they have kernels for.
PriorityLists default_priorities(DeviceType device);

}  // namespace weft
