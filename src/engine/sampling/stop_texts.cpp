#include "engine/sampling/stop_texts.h"

#include <algorithm>

namespace weft {
namespace {

// The length of the longest end of `text` that may be the beginning of a stop text.
std::size_t possible_stop_prefix(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t longest = 0;
  for (const std::string& stop : stops)
    for (std::size_t length = std::min(stop.size() - 1, text.size()); length > longest; --length)
      if (text.compare(text.size() - length, length, stop, 0, length) == 0) longest = length;
  return longest;
}

}  // namespace

// The bytes of held_ that are shown, and the offset in held_ of each.
struct StopTexts::Visible {
  std::string text;
  std::vector<std::size_t> offsets;
};

std::string StopTexts::push(std::string_view text, bool looks) {
  if (stops_.empty()) return std::string(text);
  const std::size_t old = held_.size();
  held_ += text;
  kinds_.append(text.size(), shown);
  return advance(old, looks);
}

std::string StopTexts::push_special(std::string_view text, bool looks) {
  if (stops_.empty() || text.empty()) return "";
  const std::size_t old = held_.size();
  held_ += text;
  kinds_ += special_begin;
  kinds_.append(text.size() - 1, special_rest);
  return advance(old, looks);
}

std::string StopTexts::finish() { return take_shown(held_.size()); }

std::string StopTexts::take_shown(std::size_t end) {
  std::string text;
  for (std::size_t i = 0; i < end; ++i)
    if (kinds_[i] == shown) text += held_[i];
  held_.erase(0, end);
  kinds_.erase(0, end);
  return text;
}

// Only matches that end after the first `old` bytes of held_ count.
StopTexts::Match StopTexts::first_match(const Visible& visible, std::size_t old) const {
  Match first;
  const auto take = [&](const Match& match) {
    if (match.end > old && (first.stop < 0 || match.end < first.end)) first = match;
    return match.end > old;
  };
  // A stop text must not match only a part of a special token's text.
  const auto is_cut = [&](std::size_t at) { return at < kinds_.size() && kinds_[at] == special_rest; };
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const std::string& stop = stops_[i];
    const int index = static_cast<int>(i);
    for (std::size_t at = visible.text.find(stop); at != std::string::npos; at = visible.text.find(stop, at + 1))
      if (take({index, visible.offsets[at], visible.offsets[at + stop.size() - 1] + 1, true})) break;
    for (std::size_t at = held_.find(stop); at != std::string::npos; at = held_.find(stop, at + 1))
      if (!is_cut(at) && !is_cut(at + stop.size()) && take({index, at, at + stop.size(), false})) break;
  }
  return first;
}

std::string StopTexts::take_stopped(const Match& match) {
  stopped_by_ = match.stop;
  std::string text;
  if (!includes_stop_) {
    text = take_shown(match.begin);
  } else if (match.is_shown) {
    text = take_shown(match.end);
  } else {
    text = take_shown(match.begin) + stops_[static_cast<std::size_t>(match.stop)];
  }
  held_.clear();
  kinds_.clear();
  return text;
}

std::string StopTexts::advance(std::size_t old, bool looks) {
  Visible visible;
  for (std::size_t i = 0; i < held_.size(); ++i)
    if (kinds_[i] == shown) {
      visible.text += held_[i];
      visible.offsets.push_back(i);
    }
  if (looks) {
    const Match match = first_match(visible, old);
    if (match.stop >= 0) return take_stopped(match);
  }
  visible.offsets.push_back(held_.size());
  const std::size_t of_visible = visible.offsets[visible.text.size() - possible_stop_prefix(visible.text, stops_)];
  return take_shown(std::min(of_visible, held_.size() - possible_stop_prefix(held_, stops_)));
}

}  // namespace weft
