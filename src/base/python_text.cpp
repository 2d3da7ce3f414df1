#include "base/python_text.h"

#include <algorithm>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_name_part(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

class PythonRewriter {
 public:
  explicit PythonRewriter(std::string_view text) : text_(text) {}

  std::optional<std::string> run() {
    while (at_ < text_.size() && is_sound_) {
      const char c = text_[at_];
      if (c == '\'' || c == '"') {
        rewrite_string();
      } else if (c == '<') {
        rewrite_object();
      } else if (is_letter(c)) {
        rewrite_name();
      } else if (c == '(') {
        open("[", "]");
      } else if (c == ')') {
        close();
      } else {
        json_ += c;
        ++at_;
      }
    }
    if (!is_sound_ || !closings_.empty()) return std::nullopt;
    return std::move(json_);
  }

 private:
  void open(const char* opening, const char* closing) {
    json_ += opening;
    closings_.push_back({closing, json_.size()});
    ++at_;
  }

  void close() {
    ++at_;
    is_sound_ = !closings_.empty();
    if (!is_sound_) return;
    const auto [closing, begin] = closings_.back();
    closings_.pop_back();
    const std::size_t last = json_.find_last_not_of(" \t\r\n");
    if (last != std::string::npos && last >= begin && json_[last] == ',') json_.resize(last);  // a tuple of one
    const bool is_call = closing.empty();
    json_ += is_call && json_.size() == begin ? "null" : closing;
  }

  // Strings of JSON have double quotes, and neither \' nor \x41.
  void rewrite_string() {
    const char quotes = text_[at_++];
    json_ += '"';
    while (at_ < text_.size() && text_[at_] != quotes) {
      const char c = text_[at_++];
      if (c != '\\') {
        if (c == '"') json_ += '\\';
        json_ += c;
        continue;
      }
      const char escaped = at_ < text_.size() ? text_[at_++] : '\\';
      if (escaped == 'x') {
        json_ += "\\u00";
      } else {
        if (escaped != '\'') json_ += '\\';
        json_ += escaped;
      }
    }
    is_sound_ = at_ < text_.size();
    ++at_;
    json_ += '"';
  }

  void rewrite_object() {
    int depth = 0;
    std::size_t end = at_;
    for (; end < text_.size(); ++end) {
      if (text_[end] == '<') ++depth;
      if (text_[end] == '>' && --depth == 0) break;
    }
    is_sound_ = end < text_.size();
    if (!is_sound_) return;
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    const std::string_view name = inside.substr(0, inside.find(':'));
    const std::size_t dot = name.rfind('.');
    const bool is_member = name.size() < inside.size() && dot != std::string_view::npos &&
                           std::all_of(name.begin(), name.end(), is_name_part);
    json_ += json_ascii(Json(std::string(is_member ? name.substr(dot + 1) : text_.substr(at_, end + 1 - at_))));
    at_ = end + 1;
  }

  void rewrite_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (at_ < text_.size() && text_[at_] == '(') return open("", "");
    if (name == "True") {
      json_ += "true";
    } else if (name == "False") {
      json_ += "false";
    } else if (name == "None") {
      json_ += "null";
    } else {
      json_ += name;
    }
  }

  struct Closing {
    std::string text;
    std::size_t begin;  // of what is inside, in json_
  };

  std::string_view text_;
  std::size_t at_ = 0;
  std::string json_;
  std::vector<Closing> closings_;
  bool is_sound_ = true;
};

}  // namespace

std::optional<std::string> json_of_python(std::string_view text) { return PythonRewriter(text).run(); }

}  // namespace weft
