#pragma once

// Work that is done when something is needed for the first time. After a program reports that it is ready, there should
// be no such work. It is always counted; after ready it may be forbidden (--forbid-lazy).

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

enum class FirstTime : std::uint8_t { compile, load, allocate, tune, capture };
inline constexpr std::size_t kFirstTimeKinds = 5;
std::string_view first_time_text(FirstTime kind);  // "compile", "load", ...

// Several threads may use it.
class FirstTimeWork {
 public:
  // Loading begins. This is the initial state.
  void set_loading() { ready_ = Ready::no; }
  // Loading is complete. `forbid`: later work is an error.
  void set_ready(bool forbid) { ready_ = forbid ? Ready::strict : Ready::yes; }
  bool is_ready() const { return ready_ != Ready::no; }

  // Counts one piece of work that is about to begin. InternalError, which names `what`, if it is forbidden.
  void begin(FirstTime kind, std::string_view what);

  // During its lifetime, new work is neither counted nor forbidden. A report uses it, because it must compute what a
  // model that was loaded from the cache never computed.
  class Uncounted {
   public:
    explicit Uncounted(FirstTimeWork& work) : work_(work) { ++work_.uncounted_; }
    ~Uncounted() { --work_.uncounted_; }
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;

   private:
    FirstTimeWork& work_;
  };

  // Adds the duration of one piece of work.
  void took(FirstTime kind, double milliseconds);

  struct Counts {
    std::int64_t before_ready = 0;
    std::int64_t after_ready = 0;
    double milliseconds_after_ready = 0;  // only pieces that call took()
  };
  Counts counts(FirstTime kind) const;

 private:
  enum class Ready : std::uint8_t { no, yes, strict };
  std::atomic<Ready> ready_ = Ready::no;
  std::atomic<int> uncounted_ = 0;
  std::array<std::atomic<std::int64_t>, kFirstTimeKinds> before_ = {}, after_ = {};
  std::array<std::atomic<double>, kFirstTimeKinds> milliseconds_ = {};  // after ready
};

// Attributes the work of this thread to a FirstTimeWork, for code that is too deep to get it as an argument: opening a
// shared library, allocating memory for a tensor. Runs of Plans and choices of kernels open such scopes. Other threads
// that share a run are in no scope.
class FirstTimeScope {
 public:
  // Until the scope ends, the work of this thread is counted in `work`; null: it is not counted.
  explicit FirstTimeScope(FirstTimeWork* work);
  ~FirstTimeScope();
  FirstTimeScope(const FirstTimeScope&) = delete;
  FirstTimeScope& operator=(const FirstTimeScope&) = delete;

  // The FirstTimeWork of the innermost scope; null if there is none.
  static FirstTimeWork* work();

 private:
  FirstTimeWork* outer_;
};

}  // namespace weft
