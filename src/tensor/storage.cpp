#include "tensor/storage.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include "base/error.h"
#include "base/first_time_work.h"

namespace weft {
namespace {

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kMappedFrom = std::int64_t{1} << 20;
constexpr std::int64_t kHugeFrom = std::int64_t{4} << 20;
// No processor addresses more. The limit also keeps rounding up within 64 bits.
constexpr std::int64_t kMaxStorageBytes = std::int64_t{1} << 56;

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void fail_memory(std::int64_t bytes) {
  fail_device("[memory] wanted {} bytes, but the system has no more: {}", bytes, system_error_text());
}

std::byte* map_pages(std::int64_t bytes, int protection = PROT_READ | PROT_WRITE, int more_flags = 0) {
  void* address =
      mmap(nullptr, static_cast<std::size_t>(bytes), protection, MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
  if (address == MAP_FAILED) fail_memory(bytes);
  return static_cast<std::byte*>(address);
}

void check_bytes(std::int64_t bytes) {
  CHECK(bytes >= 0, "[memory] wanted a count of bytes, but is {}", bytes);
  if (bytes > kMaxStorageBytes) fail_device("[memory] wanted {} bytes, more than any machine has", bytes);
}

// Maps one huge page more than needed and unmaps the parts outside the aligned range.
std::byte* map_huge_pages(std::int64_t bytes) {
  std::byte* start = map_pages(bytes + kHugePage);
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(start));
  const std::int64_t before = round_up(address, kHugePage) - address;
  if (before > 0) munmap(start, static_cast<std::size_t>(before));
  if (before < kHugePage) munmap(start + before + bytes, static_cast<std::size_t>(kHugePage - before));
  // This is advice only: without huge pages the memory works, with more TLB misses.
  madvise(start + before, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  return start + before;
}

}  // namespace

std::shared_ptr<Storage> Storage::allocate(std::int64_t bytes, PageSize pages) {
  check_bytes(bytes);
  if (FirstTimeWork* work = FirstTimeScope::work())
    work->begin(FirstTime::allocate, fmt::format("a tensor of {} bytes", bytes));
  std::shared_ptr<Storage> storage(new Storage);
  storage->bytes_ = bytes;
  if (bytes >= kMappedFrom) {
    const bool huge = bytes >= kHugeFrom && pages == PageSize::any;
    const std::int64_t mapped = round_up(bytes, huge ? kHugePage : kPage);
    storage->data_ = huge ? map_huge_pages(mapped) : map_pages(mapped);
    storage->mapped_bytes_ = mapped;
    return storage;
  }
  // At least one cache line, so that an empty tensor has an address, too.
  const auto size = static_cast<std::size_t>(round_up(bytes == 0 ? 1 : bytes, kLine));
  storage->data_ = static_cast<std::byte*>(std::aligned_alloc(kLine, size));
  if (storage->data_ == nullptr) fail_memory(bytes);
  std::memset(storage->data_, 0, size);
  return storage;
}

std::shared_ptr<Storage> Storage::zeros(std::int64_t bytes) {
  check_bytes(bytes);
  std::shared_ptr<Storage> storage(new Storage);
  storage->bytes_ = bytes;
  storage->mapped_bytes_ = round_up(bytes == 0 ? 1 : bytes, kPage);
  storage->data_ = map_pages(storage->mapped_bytes_, PROT_READ, MAP_NORESERVE);
  // This is advice only: the page of zeros is then a huge one, which needs fewer page table entries.
  madvise(storage->data_, static_cast<std::size_t>(storage->mapped_bytes_), MADV_HUGEPAGE);
  return storage;
}

std::shared_ptr<Storage> Storage::view_of(std::byte* data, std::int64_t bytes, std::shared_ptr<const void> owner) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->borrowed_ = true;
  storage->owner_ = std::move(owner);
  return storage;
}

Storage::~Storage() {
  if (mapped_bytes_ > 0) {
    munmap(data_, static_cast<std::size_t>(mapped_bytes_));
  } else if (!borrowed_) {
    std::free(data_);
  }
}

}  // namespace weft
