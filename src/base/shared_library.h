#pragma once

// A shared library opened while the program runs. It stays open until the program ends.

#include <optional>
#include <string>
#include <utility>

namespace weft {

class SharedLibrary {
 public:
  // A path, or a name that the loader looks up. Nothing, and the loader's words in `problem`, when it cannot be opened.
  // Counted as loading where this thread is in a FirstTimeScope.
  static std::optional<SharedLibrary> open(const std::string& name, std::string& problem);

  // Null when there is no such symbol: library.find<int(int)>("name").
  template <class Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(find_address(symbol));
  }
  // The same for one of several that are all wanted; `problem` names the first that is missing, and keeps what it
  // holds.
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
