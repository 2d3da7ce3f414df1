#pragma once

// The three kinds of failure, by cause. They are thrown as exceptions and translated once, at the program's boundary
// (command line, server, C interface):
//
//   UserError      the request, file, model or option is wrong         exit 2   HTTP 4xx
//   InternalError  Weft broke a promise: verifier, registry            exit 3   HTTP 500
//   DeviceError    memory, a driver call or a system call failed       exit 4   HTTP 503
//
// A message names the object in brackets, then the expected value, the actual value, and its origin:
//   [rms_norm] weight must be float[576] to match x: f32[s0, 576], but is f32[64] (blk.3.attn_norm.weight)

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace weft {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // The exit status of a command that ends with this error.
  virtual int exit_code() const noexcept = 0;
};

// The end of the message may have the file and line of the C++ code that made the invalid request.
class UserError : public Error {
 public:
  using Error::Error;
  int exit_code() const noexcept override { return 2; }
  const char* what() const noexcept override { return text_.empty() ? Error::what() : text_.c_str(); }

  bool has_place() const { return !text_.empty(); }
  // Replaces an earlier place.
  void set_place(const std::source_location& where);

 private:
  std::string text_;  // with the place
};

// The end of the message has the file and line of the failed check.
class InternalError : public Error {
 public:
  InternalError(const std::string& message, std::source_location where);
  int exit_code() const noexcept override { return 3; }
};

class DeviceError : public Error {
 public:
  using Error::Error;
  int exit_code() const noexcept override { return 4; }
};

template <class... Arguments>
[[noreturn]] void fail_user(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw UserError(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Runs `body`. A UserError without a place gets this one.
template <class Body>
decltype(auto) placed_at(const std::source_location& where, Body&& body) {
  try {
    return body();
  } catch (UserError& error) {
    if (!error.has_place()) error.set_place(where);
    throw;
  }
}

template <class... Arguments>
[[noreturn]] void fail_device(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw DeviceError(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// The text of the current `errno`, e.g. "No such file or directory".
std::string system_error_text();

}  // namespace weft

// USER_CHECK(condition, "[thing] wanted {}, but is {}", ...): throws UserError when the condition is false.
#define USER_CHECK(condition, ...)                    \
  do {                                                \
    if (!(condition)) ::weft::fail_user(__VA_ARGS__); \
  } while (false)

// CHECK(condition, "...", ...): throws InternalError when the condition is false.
#define CHECK(condition, ...)                                                                                   \
  do {                                                                                                          \
    if (!(condition)) throw ::weft::InternalError(::fmt::format(__VA_ARGS__), std::source_location::current()); \
  } while (false)
