#pragma once

// A flow of control with its own stack, resumed and suspended explicitly; it runs one CUDA thread. All fibers of a
// block run on one thread of the host, so no other fiber runs between two switches.
//
// For ThreadSanitizer each fiber is a thread. Everything before `start` happens before all that the fiber does, and all
// of that happens before what follows its destructor. In between, switches order nothing.

#include <cstddef>

namespace weft::cuda {

// Stacks of one size, kept for the next fibers. Each has a guard page below it.
class FiberStacks {
 public:
  static constexpr std::size_t kBytes = 64 << 10;

  FiberStacks() = default;
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  ~FiberStacks();

  // Allocates `count` stacks. Throws DeviceError if there is no memory. Existing stacks move.
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
  // Called outside; also allowed while the fiber is suspended and will never be resumed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Call this once: `entry(argument)` runs on the stack from the first `resume` on. It must not throw.
  void start(std::byte* stack, void (*entry)(void*), void* argument);

  // Called outside: runs the fiber until it suspends or `entry` returns. After that it must not be resumed.
  void resume();
  // Called inside: returns to the caller of `resume`.
  void suspend();

 private:
  static void begin(Fiber* fiber);
  void arrived();
  // The last `suspend`.
  [[noreturn]] void leave();

  void* own_ = nullptr;      // the fiber's stack pointer while it is suspended
  void* outside_ = nullptr;  // that of the caller of `resume`
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::byte* stack_ = nullptr;
  // Stack information for AddressSanitizer.
  void* own_frames_ = nullptr;
  void* outside_frames_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
  // Contexts of ThreadSanitizer.
  void* own_context_ = nullptr;
  void* outside_context_ = nullptr;
  bool has_left_ = false;
};

}  // namespace weft::cuda
