#pragma once

// A fixed set of worker threads that shares the chunks of a loop.
//
// Chunks are handed out dynamically: each thread walks its own contiguous share first (one long stream of weights) and
// then takes chunks from the others, so a core that is busy elsewhere does not hold up the loop. The caller works too,
// can finish every chunk itself, and never waits for a thread that has not started one. Idle workers spin briefly, then
// sleep. Results must not depend on which thread runs a chunk; nothing here makes them.

#include <cstdint>
#include <memory>
#include <type_traits>

namespace weft {

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

 private:
  using Function = void (*)(void* body, std::int64_t chunk, int thread);
  template <class Body>
  static void call(void* body, std::int64_t chunk, int thread) {
    (*static_cast<Body*>(body))(chunk, thread);
  }
  void run_erased(std::int64_t chunks, Function function, void* body);

  void run_inline(std::int64_t chunks, Function function, void* body, int thread);

  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace weft
