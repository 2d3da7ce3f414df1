#pragma once

// Bytes that tensors refer to: allocated memory, a mapped file, or memory whose owner outlives the storage.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft {

class Storage {
 public:
  // Returns zeroed pages, 64-byte aligned. Large storages are 2 MB aligned and ask for huge pages. Throws DeviceError
  // if there is no memory. The allocation is counted if this thread is in a FirstTimeScope. Memory that is touched
  // sparsely, such as KV pages, asks for small pages, so that only touched parts take memory.
  enum class PageSize { any, small };
  static std::shared_ptr<Storage> allocate(std::int64_t bytes, PageSize pages = PageSize::any);
  // Returns read-only bytes that are zero. The system has one page for all of them, so they take no memory.
  static std::shared_ptr<Storage> zeros(std::int64_t bytes);
  // Returns bytes that `owner` owns; the storage keeps it alive. Without an owner, the caller must keep the bytes
  // alive.
  static std::shared_ptr<Storage> view_of(std::byte* data, std::int64_t bytes, std::shared_ptr<const void> owner);

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();

 private:
  Storage() = default;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t mapped_bytes_ = 0;  // > 0 if the memory is from mmap
  bool borrowed_ = false;          // by view_of: not freed here
  std::shared_ptr<const void> owner_;
};

}  // namespace weft
