#pragma once

// Machine code in memory: a relocatable ELF object (x86-64), loaded into pages that are executable and not writable. It
// supports only the part of the format that libweft_llvm.so emits: code and constants that call nothing outside the
// object.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace weft {

class LoadedCode {
 public:
  // InternalError when the bytes are no such object, or need a symbol that the object does not define; DeviceError when
  // the system provides no pages.
  static std::shared_ptr<const LoadedCode> load(std::span<const std::byte> object);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  // The function `name`, valid for the lifetime of this object. InternalError when the object does not define it.
  template <class Function>
  Function* find(const std::string& name) const {
    return reinterpret_cast<Function*>(address_of(name));
  }
  std::size_t bytes() const;

 private:
  struct State;
  explicit LoadedCode(std::unique_ptr<State> state);
  void* address_of(const std::string& name) const;

  std::unique_ptr<State> state_;
};

}  // namespace weft
