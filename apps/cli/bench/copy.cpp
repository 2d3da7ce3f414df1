#include "apps/cli/bench/copy.h"

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

constexpr std::int64_t kPartBytes = 128 << 10, kMostParts = 4096;
// What is copied at once: well in a first cache, and too little for the C library to go around the caches.
constexpr std::int64_t kBlockBytes = 4 << 10;

using CopyWord = std::uint64_t __attribute__((vector_size(16)));

void read_only(std::span<const std::byte> bytes) {
  CopyWord all = {};
  for (std::size_t i = 0; i + sizeof(CopyWord) <= bytes.size(); i += sizeof(CopyWord)) {
    CopyWord word;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    all ^= word;
  }
  volatile std::uint64_t kept = all[0];  // else nothing would be read
  (void)kept;
}

// Part of all, as many as come to place [begin, end) of `of`.
std::span<std::byte> proportionate(std::span<std::byte> all, std::size_t begin, std::size_t end, std::size_t of) {
  const std::size_t first = all.size() * begin / of;
  return all.subspan(first, all.size() * end / of - first);
}

}  // namespace

PlainCopy::Memory::Memory(std::int64_t bytes)
    : storage(Storage::allocate(std::max<std::int64_t>(bytes, 64))), bytes(bytes) {
  std::memset(storage->data(), 1, static_cast<std::size_t>(bytes));
}

std::span<std::byte> PlainCopy::Memory::share(std::int64_t part, std::int64_t parts) const {
  constexpr std::int64_t kLine = 64;
  const std::int64_t begin = bytes / kLine * part / parts * kLine;
  return {storage->data() + begin, static_cast<std::size_t>(bytes / kLine * (part + 1) / parts * kLine - begin)};
}

PlainCopy::PlainCopy(ThreadPool& threads, std::int64_t read, std::int64_t over, std::int64_t written)
    : threads_(&threads),
      parts_(std::clamp<std::int64_t>((read + 2 * over + written) / kPartBytes, 1, kMostParts)),
      from_(read),
      over_(over),
      to_(written) {}

void PlainCopy::run() {
  if (parts_ == 1) return run_part(0);
  threads_->run(parts_, [&](std::int64_t part, int) { run_part(part); });
}

void PlainCopy::run_part(std::int64_t part) {
  std::byte block[kBlockBytes] = {};
  const std::span<std::byte> from = from_.share(part, parts_), over = over_.share(part, parts_);
  const std::span<std::byte> to = to_.share(part, parts_);
  const std::size_t longest = std::max({from.size(), over.size(), to.size()});
  for (std::size_t begin = 0; begin < longest; begin += kBlockBytes) {
    const std::size_t end = std::min<std::size_t>(begin + kBlockBytes, longest);
    const std::span<std::byte> read = proportionate(from, begin, end, longest);
    const std::span<std::byte> changed = proportionate(over, begin, end, longest);
    const std::span<std::byte> written = proportionate(to, begin, end, longest);
    std::memcpy(block, changed.data(), changed.size());
    std::memcpy(changed.data(), block, changed.size());
    const std::size_t copied = std::min(read.size(), written.size());
    std::memcpy(written.data(), read.data(), copied);
    std::memcpy(written.data() + copied, block, written.size() - copied);
    read_only(read.subspan(copied));
  }
}

}  // namespace weft
