#include "emulator/fiber.h"

#include <cstdint>
#include <cstdlib>

#include <sys/mman.h>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <vector>

#include <sanitizer/tsan_interface.h>
#endif

namespace weft::cuda {
namespace {

constexpr std::size_t kGuard = 4096;
constexpr std::size_t kStride = FiberStacks::kBytes + kGuard;

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer's contexts of fibers that have ended, kept for the next fibers, because creating one takes a
// millisecond.
class IdleContexts {
 public:
  ~IdleContexts() {
    for (void* context : contexts_) __tsan_destroy_fiber(context);
  }
  void give(void* context) { contexts_.push_back(context); }
  void* take() {
    if (contexts_.empty()) return __tsan_create_fiber(0);
    void* last = contexts_.back();
    contexts_.pop_back();
    return last;
  }

 private:
  std::vector<void*> contexts_;
};
thread_local IdleContexts idle_contexts;
#endif

}  // namespace

// Saves the callee-saved registers, stores the stack pointer in *save and continues at the stack of `load`.
extern "C" void weft_switch_stack(void** save, void* load);
// The first code on a new stack: calls r12 with rbx.
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

// The switching functions are not instrumented. ThreadSanitizer would see a function begin in one thread and end in
// another, and would report the data that both sides of a switch exchange as a race.
[[gnu::no_sanitize_thread]] Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  if (own_context_ == nullptr) return;
  void* outside = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_context_, __tsan_switch_to_fiber_no_sync);
  __tsan_switch_to_fiber(outside, 0);  // orders
  if (has_left_) {
    idle_contexts.give(own_context_);
  } else {
    __tsan_destroy_fiber(own_context_);  // it has functions that never ended
  }
#endif
}

[[gnu::no_sanitize_thread]] void Fiber::start(std::byte* stack, void (*entry)(void*), void* argument) {
  stack_ = stack;
  entry_ = entry;
  argument_ = argument;
  own_frames_ = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  // Frames of an abandoned fiber are still on this stack.
  __asan_unpoison_memory_region(stack, FiberStacks::kBytes);
#endif
  // The words that weft_switch_stack pops: r15, r14, r13, r12, rbx, rbp and the return address. The stack is aligned
  // after them.
  void** top = reinterpret_cast<void**>(stack + FiberStacks::kBytes) - 9;
  for (int i = 0; i < 9; ++i) top[i] = nullptr;
  top[3] = reinterpret_cast<void*>(&Fiber::begin);
  top[4] = this;
  top[6] = reinterpret_cast<void*>(&weft_start_fiber);
  own_ = top;
#if defined(__SANITIZE_THREAD__)
  own_context_ = idle_contexts.take();
  void* outside = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_context_, 0);  // orders
  __tsan_switch_to_fiber(outside, __tsan_switch_to_fiber_no_sync);
#endif
}

[[gnu::no_sanitize_thread]] void Fiber::begin(Fiber* fiber) {
  fiber->arrived();
  fiber->entry_(fiber->argument_);
  fiber->leave();
}

// Runs on the fiber's stack, after a switch from outside.
[[gnu::no_sanitize_thread]] void Fiber::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own_frames_, &outside_stack_, &outside_bytes_);
#endif
}

[[gnu::no_sanitize_thread]] void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&outside_frames_, stack_, FiberStacks::kBytes);
#elif defined(__SANITIZE_THREAD__)
  outside_context_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_context_, __tsan_switch_to_fiber_no_sync);
#endif
  weft_switch_stack(&outside_, own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(outside_frames_, nullptr, nullptr);
#endif
}

[[gnu::no_sanitize_thread]] void Fiber::suspend() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&own_frames_, outside_stack_, outside_bytes_);
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(outside_context_, __tsan_switch_to_fiber_no_sync);
#endif
  weft_switch_stack(&own_, outside_);
  arrived();
}

[[gnu::no_sanitize_thread]] void Fiber::leave() {
  has_left_ = true;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, outside_stack_, outside_bytes_);
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(outside_context_, __tsan_switch_to_fiber_no_sync);
#endif
  weft_switch_stack(&own_, outside_);
  std::abort();
}

}  // namespace weft::cuda
