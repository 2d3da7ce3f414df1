#include "server/reasoning.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "server/names.h"

namespace weft {
namespace {

// Mistral's models write the second, and all others the first.
constexpr ReasoningFormat kFormats[] = {
    {"think", "<think>", "</think>", "deepseek_r1 deepseek_v3 glm45 qwen3 kimi_k2 minimax_m2 olmo3 step3"},
    {"mistral", "[THINK]", "[/THINK]"},
};

}  // namespace

std::string reasoning_format_names() {
  return names_of(kFormats, [](const ReasoningFormat& one) { return one.name; }) + ", " +
         std::string(kChannelReasoning);
}

std::string wrong_reasoning_format(std::string_view name) {
  // vLLM's names of other forms.
  constexpr std::string_view kUnread = "granite hunyuan_a13b seed_oss ernie45 gemma4";
  if (has_word(kUnread, name))
    return fmt::format("{} is a form of reasoning that is not read; auto, none, {} are", quote(name),
                       reasoning_format_names());
  return fmt::format("must be auto, none, {}, but is {}", reasoning_format_names(), quote(name));
}

const ReasoningFormat* find_reasoning_format(std::string_view name) {
  for (const ReasoningFormat& format : kFormats)
    if (format.name == name || has_word(format.also, name)) return &format;
  return nullptr;
}

const ReasoningFormat* reasoning_format_of(std::string_view chat_template) {
  for (const ReasoningFormat& format : kFormats)
    if (chat_template.find(format.end) != std::string_view::npos) return &format;
  return nullptr;
}

bool begins_reasoning(std::string_view prompt, const ReasoningFormat& format) {
  return trim(prompt).ends_with(format.begin);
}

bool ends_reasoning(std::string_view prompt, const ReasoningFormat& format) {
  return trim(prompt).ends_with(format.end);
}

ReasoningParser::ReasoningParser(const ReasoningFormat& format, bool begins_inside, bool keeps_space)
    : format_(format),
      keeps_space_(keeps_space),
      state_(begins_inside ? State::reasoning : State::start),
      text_(AnswerEvent::Kind::reasoning, {format.begin, format.end}, true) {}

void ReasoningParser::push(std::string_view text, AnswerEvents& events, std::string& answer) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (state_ == State::start) {
      take_start(c, answer);
    } else if (state_ == State::reasoning) {
      const int marker = text_.push(c, events);
      if (marker == 1) state_ = keeps_space_ ? State::answer : State::after;
      // Models repeat a marker that the template wrote.
      if (marker == 0 && !text_.is_blank()) text_.put(format_.begin, events);
    } else if (state_ == State::answer || !is_json_space(c)) {
      state_ = State::answer;
      answer += text.substr(i);
      return;
    }
  }
}

// The reasoning is first, or there is none.
void ReasoningParser::take_start(char c, std::string& answer) {
  held_ += c;
  std::string_view marker = held_;
  while (!marker.empty() && is_json_space(marker[0])) marker.remove_prefix(1);
  if (!format_.begin.starts_with(marker)) {
    state_ = State::answer;
    answer += held_;
  } else if (marker == format_.begin) {
    state_ = State::reasoning;
  }
}

void ReasoningParser::finish(AnswerEvents& events, std::string& answer) {
  if (state_ == State::start) answer += held_;
  if (state_ == State::reasoning) text_.finish(events, false);
}

}  // namespace weft
