#pragma once

// A fixed set of worker threads that shares the chunks of a loop.
//
// Scheduling is dynamic: each thread first processes its own contiguous share (one long stream of weights) and then the
// shares of others. Each claim takes a quarter of the remaining chunks, so a core that is busy with other work does not
// delay the loop. A chunk must not wait for another. The caller works too and never waits for a thread that has claimed
// nothing. Idle workers spin briefly, then sleep. Results must not depend on which thread runs a chunk; the pool gives
// no guarantee about it.

#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace weft {

// The times of runs that several threads shared.
struct RunTimes {
  std::int64_t runs = 0;
  std::chrono::nanoseconds wall{0};  // of the caller, from the beginning to the end of run()
  std::chrono::nanoseconds busy{0};  // inside chunks, the sum over all threads: at most wall * threads
};

class ThreadPool {
 public:
  // `threads` includes the caller and is at least 1; 1 means no workers. DeviceError if the system provides no more
  // threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(chunk, thread) once for each chunk in [0, chunks), with thread in [0, threads()), and returns after all
  // are done. An exception from a chunk is rethrown here after the others have finished; of several, that of the lowest
  // chunk. Only one caller at a time (a second one gets an InternalError). A call from within a chunk runs its chunks
  // in order on the calling thread, with that thread's index. The pool does not copy the body.
  template <class Body>
  void run(std::int64_t chunks, Body&& body) {
    run_erased(chunks, &call<std::remove_reference_t<Body>>, const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Later runs that threads share and that end without exception add to `times`. Null, the initial value, disables the
  // measurement, which then costs two comparisons per claim. A run of one chunk or within a chunk is not shared and
  // adds nothing. Do not call it during a run.
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
