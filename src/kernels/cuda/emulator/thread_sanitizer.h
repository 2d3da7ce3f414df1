#pragma once

// What ThreadSanitizer is told of the emulator; builds without it have nothing of this. Each CUDA thread is a thread of
// its own there, and barriers alone order those of a block: accesses that no barrier lies between are a data race,
// those too that go around the emulator's own checks. Shuffles, votes and products of matrices order nothing, as on a
// GPU. Blocks run one after another, so that races between them are for the memory map alone.

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>

// Of its runtime, in none of its headers.
extern "C" void __tsan_ignore_thread_begin();
extern "C" void __tsan_ignore_thread_end();
#endif

namespace weft::cuda {

#if defined(__SANITIZE_THREAD__)
// What the running thread does between these is the emulator's, on what all threads share, and races with nothing.
inline void begin_bookkeeping() { __tsan_ignore_thread_begin(); }
inline void end_bookkeeping() { __tsan_ignore_thread_end(); }

// All that a thread did before it arrived at a point lies before what others do after they passed it. A point is an
// address that nothing else is a point of.
inline void arrive_at(const void* point) { __tsan_release(const_cast<void*>(point)); }
inline void pass(const void* point) { __tsan_acquire(const_cast<void*>(point)); }
#else
inline void begin_bookkeeping() {}
inline void end_bookkeeping() {}
inline void arrive_at(const void*) {}
inline void pass(const void*) {}
#endif

}  // namespace weft::cuda
