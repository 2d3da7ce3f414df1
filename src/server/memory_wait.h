#pragma once

// Threads of the server hand their results to other threads. A result that is lost leaves a request without its answer,
// so a thread that has too little memory to hand one over waits for it: requests that end free some.

#include <chrono>
#include <new>
#include <thread>

namespace weft {

// Calls `action` until it does not throw std::bad_alloc.
template <class Action>
void wait_for_memory(Action action) {
  constexpr std::chrono::milliseconds kPause{10};
  for (;;) {
    try {
      return action();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace weft
