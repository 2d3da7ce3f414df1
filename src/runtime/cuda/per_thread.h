#pragma once

// A value of its own for every thread. By neither the thread's id nor the object's address, which others have after
// them.

#include <atomic>
#include <cstdint>
#include <map>

namespace weft::cuda {

template <class Value>
class PerThread {
 public:
  // That of the calling thread: a fresh one at first. It stays where it is until the thread ends.
  Value& operator*() {
    thread_local std::map<std::uint64_t, Value> values;
    return values[number_];
  }
  Value* operator->() { return &**this; }

 private:
  inline static std::atomic<std::uint64_t> last_number_ = 0;
  const std::uint64_t number_ = ++last_number_;
};

}  // namespace weft::cuda
