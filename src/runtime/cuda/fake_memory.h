#pragma once

// The memory of fake devices: the host's, with a state that changes when allocations and releases run. What is not
// written yet, was released, or lies behind an allocation's end holds bytes that spoil every result.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::cuda {

class FakeMemory {
 public:
  enum class Kind : std::uint8_t { device, graph, host };
  // `is_hidden`: but for the host's it can be reached while it is shown, and not otherwise.
  explicit FakeMemory(bool is_hidden) : is_hidden_(is_hidden) {}
  void show() { protect(true); }
  void hide() { protect(false); }
  // 256-byte aligned. It may be used once begin() ran; every device may use the host's. A graph's and the host's are
  // not counted: its owner says what graphs take.
  void* add(int device, std::size_t bytes, Kind kind = Kind::device);
  // Contents become undefined, and may be used.
  void begin(void* address);
  // May not be used any more; the place stays for a while, so that a late use shows.
  void end(void* address);
  void remove(void* address);
  void remove_device(int device);

  bool is_known(const void* address) const { return find(address) != nullptr; }
  // The device it was allocated on; -1 for other memory of the host, and for what was released.
  int device_of(const void* address) const;
  // The size of the allocation that starts there; 0 for none.
  std::size_t size_of(const void* address) const;
  // Whether add() made it as the host's.
  bool is_of_host(const void* address) const;
  // Whether the bytes lie in no allocation, or in one and not beyond its end.
  bool is_in_bounds(const void* address, std::size_t bytes) const;
  // Why a kernel on `device` may not use the bytes; "" when it may. They must be device memory.
  std::string fault(const void* address, std::size_t bytes, int device) const;
  // The same for a copy, which may use the memory of every device and of the host.
  std::string copy_fault(const void* address, std::size_t bytes) const;
  // What may be used now, in the order of addresses.
  std::vector<std::span<std::byte>> usable(int device) const;
  // What was written where nothing may be written; "" for nothing. Looks at all memory of the device.
  std::string spoiled(int device) const;

  std::size_t used(int device) const;  // bytes of the device itself that are not released, without those of graphs

 private:
  enum class State : std::uint8_t { waiting, usable, released };
  struct Region {
    std::shared_ptr<std::byte> block;
    std::size_t bytes = 0;
    int device = 0;
    Kind kind = Kind::device;
    State state = State::waiting;
  };
  using Regions = std::map<std::uintptr_t, Region>;

  const Regions::value_type* find(const void* address) const;
  void drop_oldest();
  void protect(bool shown);
  std::size_t whole_bytes(std::size_t bytes) const;

  bool is_hidden_;

  Regions regions_;                                   // by address
  std::map<std::uint64_t, std::uintptr_t> released_;  // in the order of release
  std::uint64_t releases_ = 0;
  std::size_t released_bytes_ = 0;
};

}  // namespace weft::cuda
