#pragma once

// How a checkpoint scores texts, as its files state it: a class ...ForSequenceClassification of config.json, the module
// LogitScore of sentence-transformers, or the tensor cls.output of a GGUF file. A score of one number says how well two
// texts fit; several numbers are those of classes.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/embedding_config.h"
#include "io/model_config.h"

namespace weft {

// What makes probabilities of the numbers of classes.
enum class ClassActivation : std::uint8_t { sigmoid, softmax, none };

// A number that a model that generates text has as a logit: that of a token, less that of another one if there is one.
struct TokenScore {
  std::int64_t token = 0;
  std::optional<std::int64_t> less;
};

struct ScoreConfig {
  Pooling pooling = Pooling::cls;
  bool has_sigmoid = true;                             // a single score is the sigmoid of its number
  ClassActivation classes = ClassActivation::softmax;  // of one class: the sigmoid
  std::vector<std::string> labels;                     // of classes; empty: the files have none
  std::vector<TokenScore> tokens;                      // empty: the files have layers for the scores
};

// The last layer of scores in GGUF files, without ".weight".
inline constexpr const char* kLastScoreLayer = "cls.output";

using FindToken = std::function<std::optional<int>(std::string_view text)>;

// Whether the files say that the model scores texts.
bool scores_texts(const Checkpoint& checkpoint, const ModelConfig& config, std::span<const SentenceModule> modules);

// UserError for keys with other values than those above. The tokenizer finds the tokens that config.json has as texts.
ScoreConfig score_config_of(const Checkpoint& checkpoint, const ModelConfig& config,
                            std::span<const SentenceModule> modules, const FindToken& find_token);

// The prompt of two texts, as the checkpoint of a model that generates text states it.
struct ScorePrompt {
  std::string source;       // of a Jinja template over messages with the roles query and document, or a plain text
  bool is_plain = false;    // a text with {query} and {document}, as GGUF files have it
  std::string instruction;  // the message with the role system; "": there is none
  Json arguments = Json::object();  // further variables of the template
  bool has_parts = false;           // the content of a message is a list of parts, of which one is the text
  bool adds_special = false;        // the tokens that a text begins and ends with are added
};
std::optional<ScorePrompt> score_prompt_of(const Checkpoint& checkpoint, std::span<const SentenceModule> modules);

}  // namespace weft
