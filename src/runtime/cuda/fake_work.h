#pragma once

// Work that fake devices were given and have not done. It is done late and in a random order; before it stands only
// what streams and events put there. Streams are in turns favoured and left behind: a step that goes before another one
// of many steps later hardly happens where each next step is drawn alone.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "runtime/cuda/driver_calls.h"

namespace weft::cuda {

struct FakeOperation {
  enum class Kind : std::uint8_t { nothing, kernel, host, copy, fill, allocate, release };
  Kind kind = Kind::nothing;
  int device = 0;
  const StreamObject* stream = nullptr;  // that it was queued on
  FunctionObject* function = nullptr;
  LaunchSize size = {};
  std::vector<std::byte> arguments = {};
  HostFunction host = nullptr;
  void* host_data = nullptr;
  void* to = nullptr;  // also what is allocated and released
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::uint8_t value = 0;
  std::shared_ptr<void> keeps = nullptr;  // what must live until it was done
};

struct FakeWork {
  FakeOperation operation;
  std::vector<std::shared_ptr<FakeWork>> after;
  bool is_done = false;
  std::uint64_t done_at = 0;  // how much work was done by then
};
using WorkPointer = std::shared_ptr<FakeWork>;

class FakeQueue {
 public:
  // `run` does an operation; it must not throw. What is not late is done as it comes.
  FakeQueue(std::uint64_t seed, bool is_late, std::function<void(const FakeOperation&)> run)
      : random_(seed), is_late_(is_late), run_(std::move(run)), steps_between_(2 + below(14)) {}

  WorkPointer add(FakeOperation operation, std::vector<WorkPointer> after);
  // Does some work or none, as a device may at any time.
  void run_some();
  // Ends with this work done; what need not stand before it is done or not.
  void run_until(const WorkPointer& work);
  void run_device(int device);
  // Takes the device's work for done.
  void drop_device(int device);

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool run_one(const std::function<bool(const FakeWork&)>& is_wanted);
  std::size_t choose(const std::vector<std::size_t>& ready);
  void run(std::size_t index);

  std::mt19937_64 random_;
  const bool is_late_;
  std::function<void(const FakeOperation&)> run_;
  const std::size_t steps_between_;  // calls, on average, that go by before some work is done unasked
  std::map<const StreamObject*, std::uint64_t> favours_;
  std::vector<WorkPointer> waiting_;  // in the order they came
  std::uint64_t done_ = 0;
};

}  // namespace weft::cuda
