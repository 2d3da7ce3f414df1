#pragma once

// What memory a launch may touch, and who wrote and read there. A kernel that reads or writes elsewhere, writes what it
// may only read, or shares a byte between threads without an order between them is at fault.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weft::cuda {

class MemoryMap {
 public:
  // Regions must not overlap; they stay where they are while the map is used.
  void allow_reading(std::string name, const void* begin, std::size_t bytes);
  void allow_writing(std::string name, void* begin, std::size_t bytes);

  // Forgets who wrote and read what: another launch begins.
  void begin_launch();

  // What is wrong with an access of thread `thread` (a number of its own in the launch), or nothing.
  std::string note_reading(const void* address, std::size_t bytes, std::uint32_t thread);
  std::string note_writing(void* address, std::size_t bytes, std::uint32_t thread);

  // Bytes of a region that nobody wrote since the launch began. InternalError for an unknown name.
  std::size_t unwritten(const std::string& name) const;

  struct Area {
    std::string name;
    const std::byte* begin;
    std::size_t bytes;
    bool may_write;
  };
  // What was allowed, in that order.
  std::vector<Area> areas() const;

 private:
  // Who touched the bytes of a part of a region.
  struct Part {
    static constexpr std::size_t kBytes = 4096;
    std::array<std::uint32_t, kBytes> writers = {};  // 1 + the thread that wrote it, 0 for nobody
    std::array<std::uint32_t, kBytes> readers = {};  // likewise; 0xffffffff for several
  };
  struct Region {
    std::string name;
    const std::byte* begin;
    std::size_t bytes;
    bool may_write;
    // Of a region that may be written, each made when it is first touched: a launch touches little of large ones.
    std::vector<std::unique_ptr<Part>> parts = {};

    Part& part_of(std::size_t byte);
  };
  void add(std::string name, const std::byte* begin, std::size_t bytes, bool may_write);
  Region* find(const void* address);

  std::vector<Region> regions_;
  bool is_in_order_ = true;  // none begins before the end of the one before it
};

}  // namespace weft::cuda
