#pragma once

// The queued work of fake devices. It runs late and in a random order that only streams and events constrain. Each
// stream has a random priority that changes from time to time. If each next step was drawn independently, a step would
// hardly ever run before another stream's step that was queued much earlier.

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
  const StreamObject* stream = nullptr;  // the stream that it was queued on
  FunctionObject* function = nullptr;
  LaunchSize size = {};
  std::vector<std::byte> arguments = {};
  HostFunction host = nullptr;
  void* host_data = nullptr;
  void* to = nullptr;  // also the memory that is allocated or released
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::uint8_t value = 0;
  std::shared_ptr<void> keeps = nullptr;  // must live until the operation ran
};

struct FakeWork {
  FakeOperation operation;
  std::vector<std::shared_ptr<FakeWork>> after;
  bool is_done = false;
  std::uint64_t done_at = 0;  // the number of operations that were done before
};
using WorkPointer = std::shared_ptr<FakeWork>;

class FakeQueue {
 public:
  // `run` does an operation and must not throw. If `is_late` is false, work runs as soon as it is added.
  FakeQueue(std::uint64_t seed, bool is_late, std::function<void(const FakeOperation&)> run)
      : random_(seed), is_late_(is_late), run_(std::move(run)), steps_between_(2 + below(14)) {}

  WorkPointer add(FakeOperation operation, std::vector<WorkPointer> after);
  // Does some work or none, as a device may do at any time.
  void run_some();
  // Returns when this work is done; work that need not precede it may be done or not.
  void run_until(const WorkPointer& work);
  void run_device(int device);
  // Marks all work of the device as done.
  void drop_device(int device);

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool run_one(const std::function<bool(const FakeWork&)>& is_wanted);
  std::size_t choose(const std::vector<std::size_t>& ready);
  void run(std::size_t index);

  std::mt19937_64 random_;
  const bool is_late_;
  std::function<void(const FakeOperation&)> run_;
  const std::size_t steps_between_;  // average number of calls between unrequested work
  std::map<const StreamObject*, std::uint64_t> favours_;
  std::vector<WorkPointer> waiting_;  // in the order in which it was added
  std::uint64_t done_ = 0;
};

}  // namespace weft::cuda
