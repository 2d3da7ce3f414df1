#pragma once

// Annotations of the emulator for ThreadSanitizer; other builds have none. Each CUDA thread is a thread of its own, and
// only barriers order the threads of a block: accesses without a barrier between them are a data race, also if they
// bypass the emulator's own checks. Shuffles, votes and matrix products order nothing, as on a GPU. Blocks run one
// after another, so only the memory map finds races between them.

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>

// Declared by the runtime, but in none of its headers.
extern "C" void __tsan_ignore_thread_begin();
extern "C" void __tsan_ignore_thread_end();
#endif

namespace weft::cuda {

#if defined(__SANITIZE_THREAD__)
// Between these calls the running thread executes code of the emulator on shared state, which is no race.
inline void begin_bookkeeping() { __tsan_ignore_thread_begin(); }
inline void end_bookkeeping() { __tsan_ignore_thread_end(); }

// Everything that a thread did before it arrived at a point happens before what other threads do after they passed it.
// A point is an address with no other use as a point.
inline void arrive_at(const void* point) { __tsan_release(const_cast<void*>(point)); }
inline void pass(const void* point) { __tsan_acquire(const_cast<void*>(point)); }
#else
inline void begin_bookkeeping() {}
inline void end_bookkeeping() {}
inline void arrive_at(const void*) {}
inline void pass(const void*) {}
#endif

}  // namespace weft::cuda
