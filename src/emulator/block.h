#pragma once

// One block of a launch: its threads as fibers, their waiting states, and their shared memory.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/emulator.h"
#include "emulator/fiber.h"
#include "emulator/memory_map.h"
#include "emulator/thread.h"
#include "emulator/traffic.h"

namespace weft::cuda {

// The state that all blocks of a launch share.
struct Launch {
  const EmulatedKernel& kernel;
  const LaunchShape& shape;
  const void* arguments;
  const EmulatorSettings& settings;
  MemoryMap& memory;
  TrafficCounter* traffic;  // null if nothing is counted
  FiberStacks stacks;
  std::uint64_t random_state;
};

class Block {
 public:
  Block(Launch& launch, std::uint32_t block, std::uint32_t block_row);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Runs until all threads have ended. Throws DeviceError at the first fault.
  void run();

  // For the running thread; thread.h explains these functions.
  static Block& current();
  const ThreadPlace& place() const { return threads_[running_].place; }
  void barrier(const Site& site);
  void warp_barrier(std::uint32_t mask, const Site& site);
  std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source, const Site& site);
  const LaneWords* gather(const char* kind, const LaneWords& words, const Site& site);
  void reading(const void* address, std::size_t bytes, const Site& site);
  void writing(void* address, std::size_t bytes, const Site& site);
  void shared_reading(SharedElement& element, std::size_t index, const Site& array);
  void shared_writing(SharedElement& element, std::size_t index, const Site& array);
  void* shared(const void* key, void* (*make)(const Site&), void (*destroy)(void*), const Site& site);
  [[noreturn]] void fault(const std::string& what, const Site& site) const;

 private:
  enum class State : std::uint8_t { ready, at_barrier, in_exchange, ended };
  struct Thread {
    ThreadPlace place;
    Fiber fiber;
    State state = State::ready;
    Site waits_at;
    std::uint32_t warp_barriers = 0;
  };
  // Lanes of a warp at a collective operation. The next one uses the other half of `values`, so that slow lanes can
  // still read theirs.
  struct Meeting {
    std::uint32_t mask = 0, arrived = 0;
    std::uint32_t turn = 0;
    const char* kind = "";
    Site site;
    LaneWords values[2][32] = {};
  };

  static void thread_main(void* self);
  void run_thread();
  void end_thread(const std::string& failure);  // "" if it did not fail
  void wait(State state, const Site& site);
  Thread& self() { return threads_[running_]; }
  std::uint32_t random_number();
  // The address that is ThreadSanitizer's name for the next barrier of the block. There are two, because a thread may
  // arrive at a barrier before another thread has left the last one.
  const void* barrier_point() const { return &barrier_points_[barriers_ % 2]; }
  // Releases the block's barrier once all running threads have arrived.
  void release_barrier();
  // If collectives are not checked: lets all waiting threads continue with what has arrived, and returns true.
  bool let_waiting_go();
  // Waits for the lanes of the mask; returns their values.
  const LaneWords* meet(std::uint32_t mask, const char* kind, const LaneWords& value, const Site& site);
  std::uint32_t lanes_of_warp(std::uint32_t warp) const;
  std::string waiting_text() const;
  // Whether there was a barrier after the access.
  bool is_ordered(const SharedAccess& access) const;
  SharedAccess access_now() const;

  Launch& launch_;
  std::uint32_t running_ = 0;
  std::vector<std::uint32_t> ready_;
  std::uint32_t alive_ = 0, at_barrier_ = 0, barriers_ = 0;
  Site barrier_site_;
  char barrier_points_[2] = {};                             // for even and odd barriers
  std::vector<std::map<std::uint32_t, Meeting>> meetings_;  // by warp and mask
  std::map<const void*, std::shared_ptr<void>> shared_;
  std::string failure_;
  std::vector<Thread> threads_;  // destroyed before what they used
};

}  // namespace weft::cuda
