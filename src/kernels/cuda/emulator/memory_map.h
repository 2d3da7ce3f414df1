#pragma once

// What memory a launch may touch, and who wrote and read there. A kernel that reads or writes elsewhere, writes what it
// may only read, or shares a byte between threads without an order between them is at fault.

#include <cstddef>
#include <cstdint>
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

 private:
  struct Region {
    std::string name;
    const std::byte* begin;
    std::size_t bytes;
    // By byte: 1 + the thread that wrote it, 0 for nobody. Empty where nobody may write.
    std::vector<std::uint32_t> writers;
    // As many: 1 + the thread that read it, 0 for nobody, 0xffffffff for several.
    std::vector<std::uint32_t> readers;
  };
  Region* find(const void* address);

  std::vector<Region> regions_;
};

}  // namespace weft::cuda
