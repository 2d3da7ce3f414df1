#include "runtime/cuda/fake_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>
#include <sys/mman.h>

#include "base/error.h"

namespace weft::cuda {
namespace {

constexpr std::size_t kAlignment = 256, kPage = 4096;
constexpr std::size_t kBehind = 256;  // guard bytes after an allocation's end, which no one may write
constexpr std::size_t kMostReleased = std::size_t{64} << 20;
// Conspicuous garbage: about -23, -375 and -65376 as f16, and -4e8, -2e18 and -3e36 as f32.
constexpr int kNeverWritten = 0xcd, kReleased = 0xdd, kBehindTheEnd = 0xfb;

bool holds_only(const std::byte* first, std::size_t bytes, int value) {
  // memcmp() compares each byte with the next one. It must be fast, because each wait checks megabytes.
  return bytes == 0 || (static_cast<int>(*first) == value && std::memcmp(first, first + 1, bytes - 1) == 0);
}

}  // namespace

// The bytes with the guard bytes. Hidden memory is rounded up to pages, because only whole pages can be hidden.
std::size_t FakeMemory::whole_bytes(std::size_t bytes) const {
  const std::size_t unit = is_hidden_ ? kPage : kAlignment;
  return (bytes + kBehind + unit - 1) / unit * unit;
}

void* FakeMemory::add(int device, std::size_t bytes, Kind kind) {
  const std::size_t whole = whole_bytes(bytes);
  void* const pages = is_hidden_ ? mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                 : std::aligned_alloc(kAlignment, whole);
  if (pages == nullptr || pages == MAP_FAILED)
    fail_device("[memory] wanted {} bytes for a fake device, but the system has no more", bytes);
  auto* const block = static_cast<std::byte*>(pages);
  std::memset(block, kNeverWritten, bytes);
  std::memset(block + bytes, kBehindTheEnd, kBehind);
  const auto give_back = [is_hidden = is_hidden_, whole](std::byte* memory) {
    is_hidden ? static_cast<void>(munmap(memory, whole)) : std::free(memory);
  };
  regions_[reinterpret_cast<std::uintptr_t>(block)] = {{block, give_back}, bytes, device, kind, State::waiting};
  return block;
}

void FakeMemory::protect(bool shown) {
  if (!is_hidden_) return;
  for (const auto& [address, region] : regions_) {
    if (region.kind == Kind::host) continue;
    const int access = shown ? PROT_READ | PROT_WRITE : PROT_NONE;
    CHECK(mprotect(region.block.get(), whole_bytes(region.bytes), access) == 0, "mprotect of {} bytes: {}",
          whole_bytes(region.bytes), system_error_text());
  }
}

void FakeMemory::begin(void* address) {
  const auto found = regions_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == regions_.end()) return;
  std::memset(address, kNeverWritten, found->second.bytes);
  found->second.state = State::usable;
}

void FakeMemory::end(void* address) {
  const auto found = regions_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == regions_.end()) return;
  std::memset(address, kReleased, found->second.bytes);
  found->second.state = State::released;
  if (found->second.kind == Kind::graph) return;  // its address is used again
  released_[++releases_] = found->first;
  released_bytes_ += found->second.bytes;
  while (released_bytes_ > kMostReleased && released_.size() > 1) drop_oldest();
}

void FakeMemory::drop_oldest() { remove(reinterpret_cast<void*>(released_.begin()->second)); }

void FakeMemory::remove(void* address) {
  const auto found = regions_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == regions_.end()) return;
  const auto is_it = [&](const auto& entry) { return entry.second == found->first; };
  if (std::erase_if(released_, is_it) > 0) released_bytes_ -= found->second.bytes;
  regions_.erase(found);
}

void FakeMemory::remove_device(int device) {
  for (auto region = regions_.begin(); region != regions_.end();) {
    const auto next = std::next(region);
    if (region->second.device == device) remove(reinterpret_cast<void*>(region->first));
    region = next;
  }
}

const FakeMemory::Regions::value_type* FakeMemory::find(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto found = regions_.upper_bound(at);
  if (found == regions_.begin()) return nullptr;
  --found;
  return at < found->first + found->second.bytes + kBehind ? &*found : nullptr;
}

int FakeMemory::device_of(const void* address) const {
  const auto* found = find(address);
  return found == nullptr || found->second.state == State::released ? -1 : found->second.device;
}

std::size_t FakeMemory::size_of(const void* address) const {
  const auto found = regions_.find(reinterpret_cast<std::uintptr_t>(address));
  return found == regions_.end() ? 0 : found->second.bytes;
}

bool FakeMemory::is_of_host(const void* address) const {
  const auto found = regions_.find(reinterpret_cast<std::uintptr_t>(address));
  return found != regions_.end() && found->second.kind == Kind::host;
}

bool FakeMemory::is_in_bounds(const void* address, std::size_t bytes) const {
  const auto* found = find(address);
  if (found == nullptr) return true;
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(address) - found->first;
  return offset <= found->second.bytes && found->second.bytes - offset >= bytes;
}

std::string FakeMemory::fault(const void* address, std::size_t bytes, int device) const {
  const auto* found = find(address);
  if (found == nullptr) return fmt::format("{} bytes at {} are not the device's memory", bytes, address);
  if (found->second.device != device && found->second.kind != Kind::host)
    return fmt::format("{} bytes at {} are the memory of device {}, but it runs on device {}", bytes, address,
                       found->second.device, device);
  return copy_fault(address, bytes);
}

std::string FakeMemory::copy_fault(const void* address, std::size_t bytes) const {
  const auto* found = find(address);
  if (found == nullptr) return "";
  if (!is_in_bounds(address, bytes))
    return fmt::format("{} bytes at {} reach beyond the end of {} bytes", bytes, address, found->second.bytes);
  if (found->second.state == State::waiting)
    return fmt::format("{} bytes at {} are used before their allocation ran", bytes, address);
  if (found->second.state == State::released)
    return fmt::format("{} bytes at {} are used after they were released", bytes, address);
  return "";
}

std::vector<std::span<std::byte>> FakeMemory::usable(int device) const {
  std::vector<std::span<std::byte>> found;
  for (const auto& [address, region] : regions_)
    if ((region.device == device || region.kind == Kind::host) && region.state == State::usable)
      found.push_back({region.block.get(), region.bytes});
  return found;
}

std::string FakeMemory::spoiled(int device) const {
  for (const auto& [address, region] : regions_) {
    if (region.device != device) continue;
    if (!holds_only(region.block.get() + region.bytes, kBehind, kBehindTheEnd))
      return fmt::format("something wrote beyond the end of {} bytes at {}", region.bytes,
                         static_cast<const void*>(region.block.get()));
    if (region.state == State::released && !holds_only(region.block.get(), region.bytes, kReleased))
      return fmt::format("something wrote to {} bytes at {} after they were released", region.bytes,
                         static_cast<const void*>(region.block.get()));
  }
  return "";
}

std::size_t FakeMemory::used(int device) const {
  std::size_t bytes = 0;
  for (const auto& [address, region] : regions_)
    if (region.device == device && region.state != State::released && region.kind == Kind::device)
      bytes += region.bytes;
  return bytes;
}

}  // namespace weft::cuda
