#include "emulator/memory_map.h"

#include <algorithm>

#include "base/error.h"
#include "emulator/checks.h"

namespace weft::cuda {
namespace {

constexpr std::uint32_t kSeveral = 0xffffffffu;

bool is_race(std::uint32_t other, std::uint32_t thread) {
  return other != 0 && other != thread + 1 && is_checked(EmulatorCheck::races);
}
std::string problem_of_place(std::string problem) {
  return is_checked(EmulatorCheck::places) ? std::move(problem) : "";
}

}  // namespace

void MemoryMap::add(std::string name, const std::byte* begin, std::size_t bytes, bool may_write) {
  is_in_order_ = is_in_order_ && (regions_.empty() || begin >= regions_.back().begin + regions_.back().bytes);
  regions_.push_back({std::move(name), begin, bytes, may_write});
  if (may_write) regions_.back().parts.resize((bytes + Part::kBytes - 1) / Part::kBytes);
}

void MemoryMap::allow_reading(std::string name, const void* begin, std::size_t bytes) {
  add(std::move(name), static_cast<const std::byte*>(begin), bytes, false);
}

void MemoryMap::allow_writing(std::string name, void* begin, std::size_t bytes) {
  add(std::move(name), static_cast<const std::byte*>(begin), bytes, true);
}

void MemoryMap::begin_launch() {
  for (Region& region : regions_)
    for (std::unique_ptr<Part>& part : region.parts) part.reset();
}

MemoryMap::Part& MemoryMap::Region::part_of(std::size_t byte) {
  std::unique_ptr<Part>& part = parts[byte / Part::kBytes];
  if (part == nullptr) part = std::make_unique<Part>();
  return *part;
}

MemoryMap::Region* MemoryMap::find(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  const auto holds = [at](const Region& region) { return at >= region.begin && at < region.begin + region.bytes; };
  // A device's whole memory has hundreds of regions.
  if (is_in_order_) {
    auto next = std::upper_bound(regions_.begin(), regions_.end(), at,
                                 [](const std::byte* place, const Region& region) { return place < region.begin; });
    return next != regions_.begin() && holds(*--next) ? &*next : nullptr;
  }
  const auto found = std::find_if(regions_.begin(), regions_.end(), holds);
  return found == regions_.end() ? nullptr : &*found;
}

std::string MemoryMap::note_reading(const void* address, std::size_t bytes, std::uint32_t thread) {
  Region* region = find(address);
  if (region == nullptr) return problem_of_place("reads memory that was not given to it");
  const std::size_t first = static_cast<std::size_t>(static_cast<const std::byte*>(address) - region->begin);
  if (first + bytes > region->bytes) return problem_of_place(fmt::format("reads beyond the end of {}", region->name));
  if (!region->may_write) return "";
  for (std::size_t i = first; i < first + bytes; ++i) {
    Part& part = region->part_of(i);
    const std::uint32_t writer = part.writers[i % Part::kBytes];
    if (is_race(writer, thread))
      return fmt::format("reads byte {} of {}, which another thread wrote in this launch", i, region->name);
    std::uint32_t& reader = part.readers[i % Part::kBytes];
    reader = reader == 0 || reader == thread + 1 ? thread + 1 : kSeveral;
  }
  return "";
}

std::string MemoryMap::note_writing(void* address, std::size_t bytes, std::uint32_t thread) {
  Region* region = find(address);
  if (region == nullptr) return problem_of_place("writes memory that was not given to it");
  const std::size_t first = static_cast<std::size_t>(static_cast<std::byte*>(address) - region->begin);
  if (first + bytes > region->bytes) return problem_of_place(fmt::format("writes beyond the end of {}", region->name));
  if (!region->may_write) return problem_of_place(fmt::format("writes {}, which may only be read", region->name));
  for (std::size_t i = first; i < first + bytes; ++i) {
    Part& part = region->part_of(i);
    std::uint32_t& writer = part.writers[i % Part::kBytes];
    if (is_race(writer, thread))
      return fmt::format("writes byte {} of {}, which another thread wrote in this launch", i, region->name);
    if (const std::uint32_t reader = part.readers[i % Part::kBytes]; is_race(reader, thread))
      return fmt::format("writes byte {} of {}, which another thread read in this launch", i, region->name);
    writer = thread + 1;
  }
  return "";
}

std::size_t MemoryMap::unwritten(const std::string& name) const {
  for (const Region& region : regions_) {
    if (region.name != name) continue;
    std::size_t count = region.bytes;
    for (const std::unique_ptr<Part>& part : region.parts)
      if (part != nullptr)
        count -= Part::kBytes - static_cast<std::size_t>(std::count(part->writers.begin(), part->writers.end(), 0u));
    return count;
  }
  CHECK(false, "[emulator] no region {}", name);
}

std::vector<MemoryMap::Area> MemoryMap::areas() const {
  std::vector<Area> areas;
  for (const Region& region : regions_) areas.push_back({region.name, region.begin, region.bytes, region.may_write});
  return areas;
}

}  // namespace weft::cuda
