#pragma once

// The remaining budget of a rendering, and the exceptions of a running template.

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "io/chat_template.h"

namespace weft::jinja {

// Ends a rendering. The renderer adds the line and converts it to a UserError.
class TemplateFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The template itself called raise_exception: the message is for the user and needs no line.
class TemplateRefusal : public TemplateFailure {
 public:
  using TemplateFailure::TemplateFailure;
};

template <class... Arguments>
[[noreturn]] void fail_template(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw TemplateFailure(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Counts down the limits of one rendering. Throws TemplateFailure when one is used up.
class Budget {
 public:
  explicit Budget(const ChatTemplateLimits& limits)
      : steps_(limits.steps), bytes_(limits.allocated_bytes), longest_text_(limits.text_bytes) {}

  void step(std::uint64_t count = 1) {
    if (count > steps_) fail_template("the template runs for too long");
    steps_ -= count;
  }

  // Counts a search for one string in another, whose worst case compares each pair of bytes.
  void search(std::uint64_t text_bytes, std::uint64_t wanted_bytes) {
    step((text_bytes / 64 + 1) * (wanted_bytes / 16 + 1));
  }

  void allocate(std::uint64_t bytes) {
    if (bytes > bytes_) fail_template("the template uses too much memory");
    bytes_ -= bytes;
  }

  // Counts the bytes of a new string. Fails if it is too long or the budget is used up.
  void allocate_text(std::uint64_t bytes) {
    check_text(bytes);
    allocate(bytes);
  }

  void check_text(std::uint64_t bytes) const {
    if (bytes > longest_text_) fail_template("a text longer than {} bytes", longest_text_);
  }

 private:
  std::uint64_t steps_;
  std::uint64_t bytes_;
  std::size_t longest_text_;
};

}  // namespace weft::jinja
