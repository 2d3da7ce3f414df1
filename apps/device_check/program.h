#pragma once

// weft_device_check [--fake] [--device N] [--launches FILE] [--json FILE] [--table FILE] [--only PART[,PART]]
//                   [--name TEXT] [--one-each]
//
// Runs recorded launches of CUDA kernels, faults and timings on a GPU and writes the results. With --fake it uses a
// fake device, without timings. The launches are in launches.bin next to the program unless --launches names a file.
// --only selects some of the parts launches, designs, once, timings, faults, kernel_fault and graph_fault. --name
// selects only launches and timings whose kernel or label (rms_norm, 128 x 4096) contains the text. --one-each selects
// the first recorded launch of each kernel. The exit status is 1 if something failed or could not be checked, and 2, 3
// or 4 as for weft. The table is written to `out`.

#include <iosfwd>
#include <string>
#include <vector>

namespace weft::device_check {

// The exit status: 1 where something failed or could not be checked; 2, 3 or 4 as weft does. The table goes to `out`.
int run_program(const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace weft::device_check
