#pragma once

// A flow of control with a stack of its own, resumed and suspended by hand: what stands for a CUDA thread. All fibers
// of a block run on one thread of the host, so that nothing runs between two points where they switch.
//
// To ThreadSanitizer a fiber is a thread of its own. What was done before `start` lies before all that it does, and
// that before what follows its destructor; in between, to switch orders nothing.

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
  Fiber() = default;
  // Called outside, also where the fiber is suspended and nobody will resume it.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Once: `entry(argument)` runs on the stack from the first `resume` on. It must not throw.
  void start(std::byte* stack, void (*entry)(void*), void* argument);

  // Called outside: runs the fiber until it suspends or `entry` returns; after that it must not be resumed.
  void resume();
  // Called inside: goes back to who resumed.
  void suspend();

 private:
  static void begin(Fiber* fiber);
  void arrived();
  // As `suspend`, for the last time.
  [[noreturn]] void leave();

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
  // ThreadSanitizer's threads.
  void* own_context_ = nullptr;
  void* outside_context_ = nullptr;
  bool has_left_ = false;
};

}  // namespace weft::cuda
