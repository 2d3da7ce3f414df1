#pragma once

// The memory that a launch may access, with the threads that read and wrote it. A kernel is at fault if it accesses
// other memory, writes read-only memory, or shares a byte between threads without an order between them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weft::cuda {

class MemoryMap {
 public:
  // Regions must not overlap, and must stay valid while the map is used.
  void allow_reading(std::string name, const void* begin, std::size_t bytes);
  void allow_writing(std::string name, void* begin, std::size_t bytes);

  // Forgets all reads and writes, for the next launch.
  void begin_launch();

  // Returns what is wrong with an access of thread `thread` (an index that is unique in the launch), or "".
  std::string note_reading(const void* address, std::size_t bytes, std::uint32_t thread);
  std::string note_writing(void* address, std::size_t bytes, std::uint32_t thread);

  // The bytes of a region that were not written since the launch began. Throws InternalError for an unknown name.
  std::size_t unwritten(const std::string& name) const;

  struct Area {
    std::string name;
    const std::byte* begin;
    std::size_t bytes;
    bool may_write;
  };
  // The allowed regions, in the order in which they were allowed.
  std::vector<Area> areas() const;

 private:
  // The threads that accessed the bytes of a part of a region.
  struct Part {
    static constexpr std::size_t kBytes = 4096;
    std::array<std::uint32_t, kBytes> writers = {};  // 1 + the thread that wrote it, 0 for none
    std::array<std::uint32_t, kBytes> readers = {};  // the same; 0xffffffff for several
  };
  struct Region {
    std::string name;
    const std::byte* begin;
    std::size_t bytes;
    bool may_write;
    // The parts of a writable region, allocated at the first access: a launch touches little of a large region.
    std::vector<std::unique_ptr<Part>> parts = {};

    Part& part_of(std::size_t byte);
  };
  void add(std::string name, const std::byte* begin, std::size_t bytes, bool may_write);
  Region* find(const void* address);

  std::vector<Region> regions_;
  bool is_in_order_ = true;  // no region begins before the end of the previous one
};

}  // namespace weft::cuda
