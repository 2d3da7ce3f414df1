#pragma once

// A fixed set of worker threads that shares the chunks of a loop.
//
// Chunks are handed out dynamically: each thread walks its own contiguous share first (one long stream of weights) and
// then those of others, always taking a quarter of what is left, so a core that is busy elsewhere does not hold up the
// loop. No chunk may wait for another. The caller works too and never waits for a thread that has taken nothing. Idle
// workers spin briefly, then sleep. Results must not depend on which thread runs a chunk; nothing here makes them.

#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace weft {

// What the runs that threads shared took.
struct RunTimes {
  std::int64_t runs = 0;
  std::chrono::nanoseconds wall{0};  // of the caller, from run's beginning to its end
  std::chrono::nanoseconds busy{0};  // in chunks, of all threads together: at most wall * threads
};

class ThreadPool {
 public:
  // `threads` counts the caller; 1 means no workers. At least 1. DeviceError when the system gives no more threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(chunk, thread) once for every chunk in [0, chunks), thread in [0, threads()), and returns when all are
  // done. An exception from a chunk is rethrown here after the others have finished; of several, the one of the lowest
  // chunk. One caller at a time (a second one gets an InternalError); a call from within a chunk runs its chunks in
  // order on the calling thread, under that thread's number. The body is only borrowed.
  template <class Body>
  void run(std::int64_t chunks, Body&& body) {
    run_erased(chunks, &call<std::remove_reference_t<Body>>, const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Every run from now on that threads share, and that no exception ends, adds to `times`; null, as at first: nobody
  // measures, which costs two comparisons a claim. A run of one chunk, or within a chunk, is the caller's alone and
  // adds nothing. Not while a run goes on.
  void measure(RunTimes* times);

 private:
  using Function = void (*)(void* body, std::int64_t chunk, int thread);
  template <class Body>
  static void call(void* body, std::int64_t chunk, int thread) {
    (*static_cast<Body*>(body))(chunk, thread);
  }
  void run_erased(std::int64_t chunks, Function function, void* body);
  void run_shared(std::int64_t chunks, Function function, void* body);
  void run_measured(std::int64_t chunks, Function function, void* body);
  void run_inline(std::int64_t chunks, Function function, void* body, int thread);

  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace weft
