#include "tensor/storage_pool.h"

#include <array>
#include <bit>
#include <mutex>
#include <vector>

namespace weft {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeepsBlocks = false;
#else
constexpr bool kKeepsBlocks = true;
#endif

// Blocks have 64 bytes, 128, ... 64 KB; larger ones cost more to fill than to allocate. The pool keeps about 4 MB.
constexpr std::int64_t kSmallest = 64;
constexpr std::size_t kSizes = 11;
constexpr std::int64_t kKeptPerSize = std::int64_t{384} << 10;

std::int64_t bytes_of_class(std::size_t size) { return kSmallest << size; }

std::size_t class_of(std::int64_t bytes) {
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(bytes <= kSmallest ? 0 : bytes - 1) >> 6));
}

}  // namespace

class StoragePool::Blocks {
 public:
  // Returns a block of the size class, or null.
  std::shared_ptr<Storage> take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Storage>>& free = free_[size];
    if (free.empty()) return nullptr;
    std::shared_ptr<Storage> block = std::move(free.back());
    free.pop_back();
    return block;
  }
  void give_back(std::size_t size, std::shared_ptr<Storage> block) {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Storage>>& free = free_[size];
    if (static_cast<std::int64_t>(free.size()) < kKeptPerSize / bytes_of_class(size)) free.push_back(std::move(block));
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<std::shared_ptr<Storage>>, kSizes> free_;
};

StoragePool::StoragePool() : blocks_(std::make_shared<Blocks>()) {}

std::shared_ptr<Storage> StoragePool::allocate(std::int64_t bytes) {
  const std::size_t size = bytes < 0 ? kSizes : class_of(bytes);
  if (!kKeepsBlocks || size >= kSizes) return Storage::allocate(bytes);
  std::shared_ptr<Storage> block = blocks_->take(size);
  if (block == nullptr) block = Storage::allocate(bytes_of_class(size));
  std::byte* data = block->data();
  struct Lease {
    std::shared_ptr<Blocks> blocks;
    std::shared_ptr<Storage> block;
    std::size_t size;
    Lease(std::shared_ptr<Blocks> from, std::shared_ptr<Storage> taken, std::size_t of)
        : blocks(std::move(from)), block(std::move(taken)), size(of) {}
    Lease(const Lease&) = delete;
    ~Lease() { blocks->give_back(size, std::move(block)); }
  };
  return Storage::view_of(data, bytes, std::make_shared<Lease>(blocks_, std::move(block), size));
}

}  // namespace weft
