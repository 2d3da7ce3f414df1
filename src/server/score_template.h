#pragma once

// The prompt of two texts for a model that scores them: a Jinja template over messages with the roles query and
// document (and system, for an instruction), or a text with {query} and {document}.

#include <memory>
#include <optional>
#include <string>

#include "io/chat_template.h"
#include "io/score_config.h"
#include "io/vocabulary.h"

namespace weft {

class ScoreTemplate {
 public:
  // UserError if the template does not parse.
  explicit ScoreTemplate(ScorePrompt prompt);

  // UserError from the template. An instruction that is given replaces that of the model.
  std::string render(const std::string& query, const std::string& document,
                     const std::optional<std::string>& instruction, const Vocabulary& vocabulary) const;
  // Whether a prompt has both texts, which those of chats have not.
  bool has_both_texts(const Vocabulary& vocabulary) const;
  // Whether a prompt has a place for an instruction.
  bool reads_instructions() const { return template_.has_value(); }
  bool adds_special() const { return prompt_.adds_special; }

 private:
  ScorePrompt prompt_;
  std::optional<ChatTemplate> template_;  // nullopt: the prompt is plain
};

}  // namespace weft
