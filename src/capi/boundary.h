#pragma once

// The boundary between C callers and the tree. Exceptions become statuses here and nowhere else, calls on one handle
// run one after another, and texts are passed to their new owner.

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "capi/weft.h"

namespace weft {

int report_success(weft_error* error) noexcept;
// Returns the status of the exception that is being handled, and writes it to `error`.
int report_exception(weft_error* error) noexcept;

// Runs the body of an exported function. It is a template because std::function may itself throw.
template <class Body>
int at_boundary(weft_error* error, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return report_success(error);
  } catch (...) {
    return report_exception(error);
  }
}

// Returns the object that the pointer points to. UserError if it is null:
//   [weft_model_open] path_or_name must be given, but is null
template <class T>
T& given(T* pointer, std::string_view function, std::string_view argument) {
  USER_CHECK(pointer != nullptr, "[{}] {} must be given, but is null", function, argument);
  return *pointer;
}
// The same for text, which must also be UTF-8.
std::string given_text(const char* text, std::string_view function, std::string_view argument);
std::vector<std::string> given_texts(const char* const* texts, std::size_t count, std::string_view function,
                                     std::string_view argument);

// A copy that the caller frees with weft_text_free.
char* text_for_caller(const std::string& text);

// The lock of a handle: one thread uses the handle at a time.
class HandleMutex {
 public:
  // Waits until no other thread uses the handle. UserError, naming `[function]`, if this thread uses it: the call comes
  // from its own callback.
  class Lock {
   public:
    Lock(HandleMutex& mutex, std::string_view function);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    HandleMutex& handle_;
  };

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> user_{};
};

}  // namespace weft
