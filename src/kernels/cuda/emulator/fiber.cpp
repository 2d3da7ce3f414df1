#include "kernels/cuda/emulator/fiber.h"

#include <cstdint>
#include <cstdlib>

#include <sys/mman.h>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace weft::cuda {
namespace {

constexpr std::size_t kGuard = 4096;
constexpr std::size_t kStride = FiberStacks::kBytes + kGuard;

}  // namespace

// Keeps what a function call must keep, leaves the stack pointer in *save and goes on where `load` was left.
extern "C" void weft_switch_stack(void** save, void* load);
// Where a fresh stack goes on: calls r12 with rbx.
extern "C" void weft_start_fiber();
#if defined(__x86_64__)
asm(R"(
.text
.local weft_switch_stack
.type weft_switch_stack, @function
weft_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size weft_switch_stack, . - weft_switch_stack
.local weft_start_fiber
.type weft_start_fiber, @function
weft_start_fiber:
  movq %rbx, %rdi
  callq *%r12
  ud2
.size weft_start_fiber, . - weft_start_fiber
)");
#else
void weft_switch_stack(void**, void*) { fail_device("[emulator] runs on x86-64 alone"); }
void weft_start_fiber() {}
#endif

FiberStacks::~FiberStacks() {
  if (mapping_ != nullptr) ::munmap(mapping_, count_ * kStride);
}

void FiberStacks::reserve(std::size_t count) {
  if (count <= count_) return;
  void* mapped =
      ::mmap(nullptr, count * kStride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) fail_device("[emulator] no memory for {} stacks: {}", count, system_error_text());
  if (mapping_ != nullptr) ::munmap(mapping_, count_ * kStride);
  mapping_ = static_cast<std::byte*>(mapped);
  count_ = count;
  for (std::size_t i = 0; i < count; ++i) ::mprotect(mapping_ + i * kStride, kGuard, PROT_NONE);
}

std::byte* FiberStacks::stack(std::size_t index) const { return mapping_ + index * kStride + kGuard; }

void Fiber::start(std::byte* stack, void (*entry)(void*), void* argument) {
  stack_ = stack;
  entry_ = entry;
  argument_ = argument;
  own_frames_ = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  // Frames that were left for good lie there still.
  __asan_unpoison_memory_region(stack, FiberStacks::kBytes);
#endif
  // What weft_switch_stack takes off: r15, r14, r13, r12, rbx, rbp, and where to go. The stack is aligned behind it.
  void** top = reinterpret_cast<void**>(stack + FiberStacks::kBytes) - 9;
  for (int i = 0; i < 9; ++i) top[i] = nullptr;
  top[3] = reinterpret_cast<void*>(&Fiber::begin);
  top[4] = this;
  top[6] = reinterpret_cast<void*>(&weft_start_fiber);
  own_ = top;
}

void Fiber::begin(Fiber* fiber) {
  fiber->arrived();
  fiber->entry_(fiber->argument_);
  std::abort();
}

// On the fiber's stack, come from outside.
void Fiber::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own_frames_, &outside_stack_, &outside_bytes_);
#endif
}

void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&outside_frames_, stack_, FiberStacks::kBytes);
#endif
  weft_switch_stack(&outside_, own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(outside_frames_, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&own_frames_, outside_stack_, outside_bytes_);
#endif
  weft_switch_stack(&own_, outside_);
  arrived();
}

void Fiber::leave() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, outside_stack_, outside_bytes_);
#endif
  weft_switch_stack(&own_, outside_);
  std::abort();
}

}  // namespace weft::cuda
