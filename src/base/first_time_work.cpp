#include "base/first_time_work.h"

#include <utility>

#include "base/error.h"

namespace weft {
namespace {

thread_local FirstTimeWork* work_of_thread = nullptr;

}  // namespace

std::string_view first_time_text(FirstTime kind) {
  constexpr std::array<std::string_view, kFirstTimeKinds> kTexts = {"compile", "load", "allocate", "tune", "capture"};
  return kTexts.at(static_cast<std::size_t>(kind));
}

void FirstTimeWork::begin(FirstTime kind, std::string_view what) {
  if (uncounted_ > 0) return;
  const auto index = static_cast<std::size_t>(kind);
  const Ready ready = ready_;  // read once, because another thread may call set_ready
  CHECK(ready != Ready::strict,
        "[--forbid-lazy] nothing may be done for the first time after ready, but {} wants to {}", what,
        first_time_text(kind));
  ++(ready == Ready::no ? before_ : after_).at(index);
}

void FirstTimeWork::took(FirstTime kind, double milliseconds) {
  if (is_ready()) milliseconds_.at(static_cast<std::size_t>(kind)) += milliseconds;
}

FirstTimeWork::Counts FirstTimeWork::counts(FirstTime kind) const {
  const auto index = static_cast<std::size_t>(kind);
  return {before_.at(index), after_.at(index), milliseconds_.at(index)};
}

FirstTimeScope::FirstTimeScope(FirstTimeWork* work) : outer_(std::exchange(work_of_thread, work)) {}

FirstTimeScope::~FirstTimeScope() { work_of_thread = outer_; }

FirstTimeWork* FirstTimeScope::work() { return work_of_thread; }

}  // namespace weft
