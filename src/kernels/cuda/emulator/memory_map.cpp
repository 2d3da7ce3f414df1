#include "kernels/cuda/emulator/memory_map.h"

#include <algorithm>

#include "base/error.h"

namespace weft::cuda {
namespace {

constexpr std::uint32_t kSeveral = 0xffffffffu;

}  // namespace

void MemoryMap::allow_reading(std::string name, const void* begin, std::size_t bytes) {
  regions_.push_back({std::move(name), static_cast<const std::byte*>(begin), bytes, {}, {}});
}

void MemoryMap::allow_writing(std::string name, void* begin, std::size_t bytes) {
  regions_.push_back({std::move(name), static_cast<const std::byte*>(begin), bytes,
                      std::vector<std::uint32_t>(bytes, 0), std::vector<std::uint32_t>(bytes, 0)});
}

void MemoryMap::begin_launch() {
  for (Region& region : regions_) {
    std::fill(region.writers.begin(), region.writers.end(), 0);
    std::fill(region.readers.begin(), region.readers.end(), 0);
  }
}

MemoryMap::Region* MemoryMap::find(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  for (Region& region : regions_)
    if (at >= region.begin && at < region.begin + region.bytes) return &region;
  return nullptr;
}

std::string MemoryMap::note_reading(const void* address, std::size_t bytes, std::uint32_t thread) {
  Region* region = find(address);
  if (region == nullptr) return "reads memory that was not given to it";
  const std::size_t first = static_cast<std::size_t>(static_cast<const std::byte*>(address) - region->begin);
  if (first + bytes > region->bytes) return fmt::format("reads beyond the end of {}", region->name);
  if (region->writers.empty()) return "";
  for (std::size_t i = first; i < first + bytes; ++i) {
    const std::uint32_t writer = region->writers[i];
    if (writer != 0 && writer != thread + 1)
      return fmt::format("reads byte {} of {}, which another thread wrote in this launch", i, region->name);
    std::uint32_t& reader = region->readers[i];
    reader = reader == 0 || reader == thread + 1 ? thread + 1 : kSeveral;
  }
  return "";
}

std::string MemoryMap::note_writing(void* address, std::size_t bytes, std::uint32_t thread) {
  Region* region = find(address);
  if (region == nullptr) return "writes memory that was not given to it";
  const std::size_t first = static_cast<std::size_t>(static_cast<std::byte*>(address) - region->begin);
  if (first + bytes > region->bytes) return fmt::format("writes beyond the end of {}", region->name);
  if (region->writers.empty()) return fmt::format("writes {}, which may only be read", region->name);
  for (std::size_t i = first; i < first + bytes; ++i) {
    std::uint32_t& writer = region->writers[i];
    if (writer != 0 && writer != thread + 1)
      return fmt::format("writes byte {} of {}, which another thread wrote in this launch", i, region->name);
    if (const std::uint32_t reader = region->readers[i]; reader != 0 && reader != thread + 1)
      return fmt::format("writes byte {} of {}, which another thread read in this launch", i, region->name);
    writer = thread + 1;
  }
  return "";
}

std::size_t MemoryMap::unwritten(const std::string& name) const {
  for (const Region& region : regions_)
    if (region.name == name)
      return static_cast<std::size_t>(std::count(region.writers.begin(), region.writers.end(), 0u));
  CHECK(false, "[emulator] no region {}", name);
}

}  // namespace weft::cuda
