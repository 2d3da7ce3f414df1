#pragma once

// The edge between C callers and the tree: exceptions become statuses here and nowhere else, handles take turns, and
// texts change hands.

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
// The status of the exception that is being handled.
int report_exception(weft_error* error) noexcept;

// The body of an exported function. A template, since std::function may itself throw.
template <class Body>
int at_boundary(weft_error* error, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return report_success(error);
  } catch (...) {
    return report_exception(error);
  }
}

// The pointer; UserError when it is null: [weft_model_open] path_or_name must be given, but is null
template <class T>
T& given(T* pointer, std::string_view function, std::string_view argument) {
  USER_CHECK(pointer != nullptr, "[{}] {} must be given, but is null", function, argument);
  return *pointer;
}
// Of text: UTF-8 as well.
std::string given_text(const char* text, std::string_view function, std::string_view argument);
std::vector<std::string> given_texts(const char* const* texts, std::size_t count, std::string_view function,
                                     std::string_view argument);

// A copy that weft_text_free takes.
char* text_for_caller(const std::string& text);

// Who uses a handle.
class Turns {
 public:
  // Waits until nobody uses it. UserError, naming `[function]`, where this thread does: within its own callback.
  class Turn {
   public:
    Turn(Turns& turns, std::string_view function);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turns& turns_;
  };

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> user_{};
};

}  // namespace weft
