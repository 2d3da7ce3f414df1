#pragma once

// The memory of fake devices: host memory with a state that changes when allocations and releases run. Bytes that are
// not written yet, were released, or are past the end of an allocation hold a pattern that spoils every result.

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
  // `is_hidden`: device memory is accessible only between show() and hide().
  explicit FakeMemory(bool is_hidden) : is_hidden_(is_hidden) {}
  void show() { protect(true); }
  void hide() { protect(false); }
  // Adds 256-byte aligned memory. It may be used once begin() ran; every device may use host memory. Memory of graphs
  // and of the host is not counted in used(): the owner of a graph counts its memory.
  void* add(int device, std::size_t bytes, Kind kind = Kind::device);
  // The contents become undefined and may be used from now on.
  void begin(void* address);
  // The memory must not be used any more. It stays mapped for a while, so that a late use is detected.
  void end(void* address);
  void remove(void* address);
  void remove_device(int device);

  bool is_known(const void* address) const { return find(address) != nullptr; }
  // The device that it was allocated on; -1 for other host memory, and for released memory.
  int device_of(const void* address) const;
  // The size of the allocation that starts at the address; 0 for none.
  std::size_t size_of(const void* address) const;
  // Whether add() made it as host memory.
  bool is_of_host(const void* address) const;
  // False if the bytes begin in an allocation and extend past its end.
  bool is_in_bounds(const void* address, std::size_t bytes) const;
  // The reason why a kernel on `device` may not use the bytes; "" when it may. They must be device memory.
  std::string fault(const void* address, std::size_t bytes, int device) const;
  // The same for a copy, which may use the memory of every device and of the host.
  std::string copy_fault(const void* address, std::size_t bytes) const;
  // The memory that may be used now, in the order of addresses.
  std::vector<std::span<std::byte>> usable(int device) const;
  // A message about a write where nothing may be written; "" for none. Checks all memory of the device.
  std::string spoiled(int device) const;

  std::size_t used(int device) const;  // unreleased bytes of the device, without those of graphs

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
