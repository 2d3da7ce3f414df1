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

std::string StopTexts::push(std::string_view text) {
  if (stops_.empty()) return std::string(text);
  held_ += text;
  kinds_.append(text.size(), shown);
  return advance();
}

std::string StopTexts::push_special(std::string_view text) {
  if (stops_.empty() || text.empty()) return "";
  held_ += text;
  kinds_ += special_begin;
  kinds_.append(text.size() - 1, special_rest);
  return advance();
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

std::string StopTexts::advance() {
  std::string visible;
  std::vector<std::size_t> places;  // the offsets in held_ of visible's bytes and of its end
  for (std::size_t i = 0; i < held_.size(); ++i)
    if (kinds_[i] == shown) {
      visible += held_[i];
      places.push_back(i);
    }
  places.push_back(held_.size());
  std::size_t first = std::string::npos;
  // A stop text must not match only a part of a special token's text.
  const auto is_cut = [&](std::size_t at) { return at < kinds_.size() && kinds_[at] == special_rest; };
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const std::string& stop = stops_[i];
    const std::size_t before = first;
    if (const std::size_t at = visible.find(stop); at != std::string::npos) first = std::min(first, places[at]);
    for (std::size_t at = held_.find(stop); at < first; at = held_.find(stop, at + 1))
      if (!is_cut(at) && !is_cut(at + stop.size())) first = at;
    if (first != before) stopped_by_ = static_cast<int>(i);
  }
  if (has_stopped()) {
    std::string text = take_shown(first);
    held_.clear();
    kinds_.clear();
    return text;
  }
  const std::size_t of_visible = places[visible.size() - possible_stop_prefix(visible, stops_)];
  return take_shown(std::min(of_visible, held_.size() - possible_stop_prefix(held_, stops_)));
}

}  // namespace weft
