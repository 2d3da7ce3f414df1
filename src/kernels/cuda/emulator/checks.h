#pragma once

// What the emulator, and what else runs kernels over a MemoryMap, holds a kernel to, check by check. Tests leave one
// out to show that it alone sees a planted bug (tests/without_check.h); nothing else does.

#include <cstdint>

namespace weft::cuda {

enum class EmulatorCheck : std::uint8_t {
  places,    // accesses lie in the memory given, at multiples of their size. Without it they happen wherever they lie
  races,     // of global memory: no byte that one thread writes is another one's
  shared,    // of shared memory: nothing is read that nobody wrote, or with no barrier between threads
  meetings,  // all threads of a barrier or shuffle come. Without it those that came go on once no other can run
  traffic    // sectors are counted where the bytes lie. Without it as if the bytes of a request lay side by side
};

// One bit of each that is left out, set before the first launch.
inline std::uint32_t emulator_checks_left_out = 0;

inline bool is_checked(EmulatorCheck check) {
  return (emulator_checks_left_out >> static_cast<unsigned>(check) & 1u) == 0;
}

}  // namespace weft::cuda
