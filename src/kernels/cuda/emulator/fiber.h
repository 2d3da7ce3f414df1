#pragma once

// A flow of control with a stack of its own, resumed and suspended by hand: what stands for a CUDA thread. All fibers
// of a block run on one thread of the host, so that nothing runs between two points where they switch.

#include <cstddef>

namespace weft::cuda {

// Stacks of one size, kept for the next fibers; each has a page below it that must not be touched.
class FiberStacks {
 public:
  static constexpr std::size_t kBytes = 64 << 10;

  FiberStacks() = default;
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  ~FiberStacks();

  // Makes room for so many. DeviceError when there is no memory. Stacks that were given move.
  void reserve(std::size_t count);
  // The lowest byte of a stack.
  std::byte* stack(std::size_t index) const;

 private:
  std::byte* mapping_ = nullptr;
  std::size_t count_ = 0;
};

class Fiber {
 public:
  // Runs `entry(argument)` on the stack at the first `resume`. `entry` must not return: it ends with `leave`.
  void start(std::byte* stack, void (*entry)(void*), void* argument);

  // Called outside: runs the fiber until it suspends or leaves.
  void resume();
  // Called inside: goes back to who resumed.
  void suspend();
  // The same for the last time.
  [[noreturn]] void leave();

 private:
  static void begin(Fiber* fiber);
  void arrived();

  void* own_ = nullptr;      // the fiber's stack pointer while it is suspended
  void* outside_ = nullptr;  // that of who resumed it
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::byte* stack_ = nullptr;
  // What AddressSanitizer wants to know of stacks.
  void* own_frames_ = nullptr;
  void* outside_frames_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

}  // namespace weft::cuda
