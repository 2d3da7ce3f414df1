#pragma once

// A shared library that the program opens at run time. It stays open until the program ends.

#include <optional>
#include <string>
#include <utility>

namespace weft {

class SharedLibrary {
 public:
  // Opens a path, or a name that the loader looks up. On failure returns nullopt and stores the loader's message in
  // `problem`. Counts as loading if this thread is in a FirstTimeScope.
  static std::optional<SharedLibrary> open(const std::string& name, std::string& problem);

  // The address of a symbol, as in library.find<int(int)>("name"); null if there is no such symbol.
  template <class Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(find_address(symbol));
  }
  // The same for one of several required symbols. `problem` names the first missing one; an existing message stays.
  template <class Function>
  void find(const char* symbol, Function*& function, std::string& problem) const {
    function = find<Function>(symbol);
    if (function == nullptr && problem.empty()) problem = name_ + " has no " + symbol;
  }

 private:
  SharedLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  void* find_address(const char* symbol) const;

  std::string name_;
  void* handle_;
};

}  // namespace weft
