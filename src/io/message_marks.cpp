#include "io/message_marks.h"

#include <algorithm>
#include <string_view>

namespace weft {
namespace {

constexpr std::string_view kMarks[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

bool has_token(const Vocabulary& vocabulary, std::string_view text) {
  return std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text) != vocabulary.tokens.end();
}

}  // namespace

void show_message_marks(Vocabulary& vocabulary) {
  if (!has_token(vocabulary, "<|return|>") || !has_token(vocabulary, "<|call|>")) return;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (std::find(std::begin(kMarks), std::end(kMarks), vocabulary.tokens[id]) != std::end(kMarks))
      if (vocabulary.kinds[id] == TokenKind::control) vocabulary.kinds[id] = TokenKind::user_defined;
}

}  // namespace weft
