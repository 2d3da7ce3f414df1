#pragma once

// Which provider computes an op when nobody says otherwise; --ir-op-priority puts others first.

#include "kernels/registry.h"
#include "kernels/select.h"

namespace weft {

// By device, the same for eager and compiled mode; `native` always comes last.
//
//   cuda       kernels with the device's own mathematics (provider cuda), which are as fast as memory allows
//   fake_cuda  those with house mathematics (cuda_house) where there are two forms, so that what comes out has the
//              host's bits; --ir-op-priority.OP=cuda has the emulator run what a GPU does
//
// Both forms are batch-invariant, and no choice depends on a count of rows: --batch-invariant leaves the form as it is.
PriorityLists default_priorities(const KernelRegistry& kernels, DeviceType device);

}  // namespace weft
