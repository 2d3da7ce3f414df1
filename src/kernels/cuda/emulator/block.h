#pragma once

// One block of a launch: its threads as fibers, who waits where, and what they share.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/fiber.h"
#include "kernels/cuda/emulator/memory_map.h"
#include "kernels/cuda/emulator/thread.h"
#include "kernels/cuda/emulator/traffic.h"

namespace weft::cuda {

// What the blocks of a launch have in common.
struct Launch {
  const EmulatedKernel& kernel;
  const LaunchShape& shape;
  const void* arguments;
  const EmulatorSettings& settings;
  MemoryMap& memory;
  TrafficCounter* traffic;  // null where nothing is counted
  FiberStacks stacks;
  std::uint64_t random_state;
};

class Block {
 public:
  Block(Launch& launch, std::uint32_t block, std::uint32_t block_row);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Until all threads ended; DeviceError at the first fault.
  void run();

  // For the running thread; thread.h says what they do.
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
  // Lanes of a warp that meet. Values stay for those that read them late: the next meeting uses the other half.
  struct Meeting {
    std::uint32_t mask = 0, arrived = 0;
    std::uint32_t turn = 0;
    const char* kind = "";
    Site site;
    LaneWords values[2][32] = {};
  };

  static void thread_main(void* self);
  void run_thread();
  void end_thread(const std::string& failure);  // "" where it did not fail
  void wait(State state, const Site& site);
  Thread& self() { return threads_[running_]; }
  std::uint32_t random_number();
  // What the next barrier of the block is to ThreadSanitizer. A thread may come to it before another has left the last.
  const void* barrier_point() const { return &barrier_points_[barriers_ % 2]; }
  // Lets go of the block's barrier once all that run have come.
  void release_barrier();
  // Where meetings are not checked: all that wait go on with what is there, and it is true.
  bool let_waiting_go();
  // Meets the lanes of the mask; where their values lie.
  const LaneWords* meet(std::uint32_t mask, const char* kind, const LaneWords& value, const Site& site);
  std::uint32_t lanes_of_warp(std::uint32_t warp) const;
  std::string waiting_text() const;
  // Whether a barrier lies between the access and now.
  bool is_ordered(const SharedAccess& access) const;
  SharedAccess access_now() const;

  Launch& launch_;
  std::uint32_t running_ = 0;
  std::vector<std::uint32_t> ready_;
  std::uint32_t alive_ = 0, at_barrier_ = 0, barriers_ = 0;
  Site barrier_site_;
  char barrier_points_[2] = {};                             // of even and of odd barriers
  std::vector<std::map<std::uint32_t, Meeting>> meetings_;  // by warp and mask
  std::map<const void*, std::shared_ptr<void>> shared_;
  std::string failure_;
  std::vector<Thread> threads_;  // destroyed before what they used
};

}  // namespace weft::cuda
