#pragma once

// Whether this process may use AMX: tiles of bf16 and i8.

#include <cstdint>
#include <string>

namespace weft {

struct AmxFacts {
  bool is_virtual = false;  // the processor is a hypervisor's
  bool tile = false, bf16 = false, i8 = false;
  bool wide_tiles = false;    // palette 1 has 8 tiles of 16 rows of 64 bytes
  bool saves_tiles = false;   // the system saves tiles of threads
  int permission_error = -1;  // of the request for this process: 0 if granted, else an errno; -1 if it was not made
};

// "" if AMX can be used, else the reason.
std::string amx_problem(const AmxFacts& facts);

// Those of the host. If the processor has AMX, permission is requested, once for the process. The system refuses it
// while a thread has a signal stack that is too small for tiles, so the first call is before those are installed.
const AmxFacts& host_amx();

}  // namespace weft
