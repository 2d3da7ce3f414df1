#pragma once

// Machine code in memory: a relocatable ELF object (x86-64) laid out in pages that can be executed and not written.
// Enough of the format for what libweft_llvm.so makes: code and constants that call nothing outside.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace weft {

class LoadedCode {
 public:
  // InternalError when the bytes are no such object, or want a symbol that it does not define; DeviceError when the
  // system gives no pages.
  static std::shared_ptr<const LoadedCode> load(std::span<const std::byte> object);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  // InternalError when the object does not define it. Valid as long as this lives.
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
