#pragma once

// Work that is done where something is met for the first time: there should be none of it once a program says that it
// is ready. Always counted; after ready it may be forbidden (--forbid-lazy).

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

enum class FirstTime : std::uint8_t { compile, load, allocate, tune, capture };
inline constexpr std::size_t kFirstTimeKinds = 5;
std::string_view first_time_text(FirstTime kind);  // "compile", "load", ...

// For several threads.
class FirstTimeWork {
 public:
  // Something is being loaded; so it is at first.
  void set_loading() { ready_ = Ready::no; }
  // Everything is there from here on. `forbid`: what still comes is an error.
  void set_ready(bool forbid) { ready_ = forbid ? Ready::strict : Ready::yes; }
  bool is_ready() const { return ready_ != Ready::no; }

  // Counts one piece of work that is about to begin. InternalError, naming `what`, when it is forbidden.
  void begin(FirstTime kind, std::string_view what);

  // While it lives, what begins is neither counted nor forbidden: a report makes for itself what a model that was found
  // compiled never made.
  class Uncounted {
   public:
    explicit Uncounted(FirstTimeWork& work) : work_(work) { ++work_.uncounted_; }
    ~Uncounted() { --work_.uncounted_; }
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;

   private:
    FirstTimeWork& work_;
  };

  // Adds how long a piece took.
  void took(FirstTime kind, double milliseconds);

  struct Counts {
    std::int64_t before_ready = 0;
    std::int64_t after_ready = 0;
    double milliseconds_after_ready = 0;  // of pieces that say so
  };
  Counts counts(FirstTime kind) const;

 private:
  enum class Ready : std::uint8_t { no, yes, strict };
  std::atomic<Ready> ready_ = Ready::no;
  std::atomic<int> uncounted_ = 0;
  std::array<std::atomic<std::int64_t>, kFirstTimeKinds> before_ = {}, after_ = {};
  std::array<std::atomic<double>, kFirstTimeKinds> milliseconds_ = {};  // after ready
};

// Whose work this thread does, for what lies too deep to be told: the opening of a shared library, the taking of a
// tensor's memory. Runs of Plans and choices of kernels are such scopes; threads that share a run are in none.
class FirstTimeScope {
 public:
  // Until its end this thread's work counts there; null: nowhere.
  explicit FirstTimeScope(FirstTimeWork* work);
  ~FirstTimeScope();
  FirstTimeScope(const FirstTimeScope&) = delete;
  FirstTimeScope& operator=(const FirstTimeScope&) = delete;

  // That of the innermost scope; null where there is none.
  static FirstTimeWork* work();

 private:
  FirstTimeWork* outer_;
};

}  // namespace weft
