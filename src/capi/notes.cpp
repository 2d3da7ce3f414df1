#include <algorithm>

#include <fmt/ranges.h>

#include "capi/handles.h"

namespace weft {

void Notes::add(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (std::find(sentences_.begin(), sentences_.end(), sentence) == sentences_.end()) sentences_.push_back(sentence);
}

bool Notes::contains(const std::string& sentence) const {
  const std::lock_guard lock(mutex_);
  return std::find(sentences_.begin(), sentences_.end(), sentence) != sentences_.end();
}

std::string Notes::text() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("{}", fmt::join(sentences_, "\n"));
}

WarningSink sink_of(const std::shared_ptr<Notes>& notes) {
  return [notes](const std::string& sentence) { notes->add(sentence); };
}

}  // namespace weft
