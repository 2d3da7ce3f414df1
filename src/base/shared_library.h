#pragma once

// A shared library opened while the program runs. It stays open until the program ends.

#include <optional>
#include <string>

namespace weft {

class SharedLibrary {
 public:
  // A path, or a name that the loader looks up. Nothing, and the loader's words in `problem`, when it cannot be opened.
  static std::optional<SharedLibrary> open(const std::string& name, std::string& problem);

  // Null when there is no such symbol: library.find<int(int)>("name").
  template <class Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(find_address(symbol));
  }

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* find_address(const char* symbol) const;

  void* handle_;
};

}  // namespace weft
