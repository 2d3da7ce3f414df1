#pragma once

// Which provider computes an op when nobody says otherwise; --ir-op-priority puts others first.

#include "kernels/kernel.h"
#include "kernels/select.h"

namespace weft {

// By device, the same for eager and compiled mode; `native` always comes last.
//
//   cuda       kernels with the device's own mathematics (provider cuda), which take about a third of the instructions
//   fake_cuda  those with house mathematics (cuda_house) where there are two forms, so that what comes out has the
//              host's bits; --ir-op-priority.OP=cuda has the emulator run what a GPU does
//
// Both forms are batch-invariant, and no choice between them depends on a count of rows: --batch-invariant leaves the
// form as it is. Ahead of both stand cublaslt and cuda_mma for the ops that they have kernels of.
PriorityLists default_priorities(DeviceType device);

}  // namespace weft
