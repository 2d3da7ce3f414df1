#pragma once

// The checks of the emulator, and of other code that runs kernels over a MemoryMap. Tests leave one out to show that it
// alone detects a seeded fault (tests/without_check.h); no other code does.

#include <cstdint>

namespace weft::cuda {

enum class EmulatorCheck : std::uint8_t {
  places,    // accesses are inside the given memory, at multiples of their size. Without it any access happens
  races,     // global memory: no byte that one thread writes is accessed by another
  shared,    // shared memory: no read of unwritten data, or without a barrier between threads
  meetings,  // all threads arrive at a barrier or shuffle. Without it the others continue once no thread can run
  traffic    // sectors are counted by address. Without it as if the bytes of a request were contiguous
};

// One bit for each check that is left out, set before the first launch.
inline std::uint32_t emulator_checks_left_out = 0;

inline bool is_checked(EmulatorCheck check) {
  return (emulator_checks_left_out >> static_cast<unsigned>(check) & 1u) == 0;
}

}  // namespace weft::cuda
