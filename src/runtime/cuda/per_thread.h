#pragma once

// A separate value for each thread. The key is a unique number, and neither the thread's id nor the object's address,
// because both may be reused.

#include <atomic>
#include <cstdint>
#include <map>

namespace weft::cuda {

template <class Value>
class PerThread {
 public:
  // The value of the calling thread, created at the first use. Its address is stable until the thread ends.
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
