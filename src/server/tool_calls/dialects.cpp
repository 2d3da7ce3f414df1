#include "server/tool_calls/dialects.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "server/names.h"

namespace weft {
namespace {

class ArgumentsParser final : public ToolParser {
 public:
  explicit ArgumentsParser(std::string function) : function_(std::move(function)) {}

  // An answer that is cut within its reasoning has no call.
  void finish(AnswerEvents& events) override {
    if (has_begun_) events.push_back({.kind = AnswerEvent::Kind::call_end});
  }

 private:
  void take(char c, AnswerEvents& events) override {
    begin(events);
    add_text(events, AnswerEvent::Kind::call_arguments, {&c, 1});
  }

  void begin(AnswerEvents& events) {
    if (has_begun_) return;
    has_begun_ = true;
    events.push_back({.kind = AnswerEvent::Kind::call_begin, .text = function_});
  }

  std::string function_;
  bool has_begun_ = false;
};

}  // namespace

std::span<const ToolDialect* const> tool_dialects() {
  static const ToolDialect* const kDialects[] = {&openai_dialect(), &qwen3_coder_dialect(), &glm45_dialect(),
                                                 &hermes_dialect(), &mistral_dialect(),     &llama3_json_dialect(),
                                                 &unknown_dialect()};
  return kDialects;
}

const ToolDialect& dialect_of(std::string_view chat_template, const Vocabulary& vocabulary) {
  for (const ToolDialect* dialect : tool_dialects())
    if (dialect->is_of(chat_template, vocabulary)) return *dialect;
  return unknown_dialect();
}

std::string dialect_names() {
  return names_of(tool_dialects(), [](const ToolDialect* one) { return one->name; });
}

const ToolDialect* find_dialect(std::string_view name) {
  for (const ToolDialect* dialect : tool_dialects())
    if (dialect->name == name || has_word(dialect->other_names, name)) return dialect;
  return nullptr;
}

std::string wrong_dialect(std::string_view name) {
  // vLLM's names of other forms.
  constexpr std::string_view kUnread =
      "pythonic llama4_pythonic olmo3 deepseek_v3 deepseek_v31 deepseek_v32 kimi_k2 minimax minimax_m2 granite "
      "granite-20b-fc granite4 internlm xlam phi4_mini_json jamba step3 step3p5 gemma gemma4 functiongemma "
      "hunyuan_a13b seed_oss ernie45 gigachat3 longcat";
  if (has_word(kUnread, name))
    return fmt::format("{} is a form of calls that is not read; auto, none, {} are", quote(name), dialect_names());
  return fmt::format("must be auto, none, {}, but is {}", dialect_names(), quote(name));
}

std::unique_ptr<ToolParser> arguments_parser(std::string function) {
  return std::make_unique<ArgumentsParser>(std::move(function));
}

bool has_token(const Vocabulary& vocabulary, std::string_view text) {
  return std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text) != vocabulary.tokens.end();
}

}  // namespace weft
