#pragma once

// Bytes that tensors look into: memory of our own, a mapped file, or memory lent by someone who outlives us.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft {

class Storage {
 public:
  // Zeroed pages, 64-byte aligned (2 MB aligned with huge pages asked for, when large). DeviceError when there is no
  // memory. Counted where this thread is in a FirstTimeScope.
  // Memory that is touched here and there, such as KV pages, asks for small pages: of it only what was touched counts.
  enum class PageSize { any, small };
  static std::shared_ptr<Storage> allocate(std::int64_t bytes, PageSize pages = PageSize::any);
  // Bytes that are zero and can only be read: the system has one page for all of them, so they take no memory, but are
  // not written to either.
  static std::shared_ptr<Storage> zeros(std::int64_t bytes);
  // Bytes owned by `owner`, which is kept alive; without an owner, by someone who outlives the storage.
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
  std::int64_t mapped_bytes_ = 0;  // > 0 when the memory came from mmap
  bool borrowed_ = false;          // by view_of: not ours to free
  std::shared_ptr<const void> owner_;
};

}  // namespace weft
