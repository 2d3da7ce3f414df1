#pragma once

// What compiling one grammar may cost: a grammar of a request must not hold up the others, nor fill the memory.

#include <chrono>
#include <cstddef>
#include <string_view>

#include <fmt/core.h>

#include "base/error.h"

namespace weft::grammar {

inline constexpr std::size_t kMostStates = 50'000;        // of all automata of a grammar
inline constexpr std::size_t kMostDraftStates = 400'000;  // before they are made deterministic
inline constexpr std::size_t kMostCounts = 1 << 24;       // states times the least numbers of characters
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::seconds kLongestCompilation{100};  // a sanitizer makes all of it that much slower
#else
inline constexpr std::chrono::seconds kLongestCompilation{5};
#endif

// It depends on how busy the machine is, unlike all other errors of a grammar: another attempt may succeed.
class OutOfTime final : public UserError {
 public:
  using UserError::UserError;
};

// The message goes on after the name of what is too large.
class OverBudget final : public UserError {
 public:
  using UserError::UserError;
};

class Budget {
 public:
  // OverBudget beyond these numbers, OutOfTime after the time.
  void take_state() {
    if (++states_ > kMostStates) fail(kMostStates, "states");
    check_time();
  }
  void take_draft_state() {
    if (++drafts_ > kMostDraftStates) fail(kMostStates, "states");
    if (drafts_ % 1024 == 0) check_time();
  }
  void take_counts(std::size_t count) {
    counts_ += count;
    if (counts_ > kMostCounts) fail(kMostCounts, "states and numbers of characters");
  }
  void check_time() const {
    if (std::chrono::steady_clock::now() > end_)
      throw OutOfTime(fmt::format("[grammar] takes more than {} s to compile", kLongestCompilation.count()));
  }

 private:
  [[noreturn]] static void fail(std::size_t most, std::string_view what) {
    throw OverBudget(fmt::format("needs more than {} {}", most, what));
  }

  std::size_t states_ = 0, drafts_ = 0, counts_ = 0;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kLongestCompilation;
};

}  // namespace weft::grammar
