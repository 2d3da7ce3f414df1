#include "io/score_config.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/checkpoint.h"
#include "io/config_fields.h"
#include "io/gguf.h"

namespace weft {
namespace {

constexpr const char *kConfig = "config.json", *kTextConfig = "sentence_bert_config.json",
                     *kPromptConfig = "config_sentence_transformers.json";
constexpr const char* kTokenModule = "LogitScore";

const SentenceModule* token_module(std::span<const SentenceModule> modules) {
  const auto found = std::find_if(modules.begin(), modules.end(),
                                  [](const SentenceModule& module) { return module.name == kTokenModule; });
  return found == modules.end() ? nullptr : &*found;
}

TokenScore token_score_of(const Checkpoint& checkpoint, const SentenceModule& module, std::int64_t vocabulary) {
  const Json config = config_of(checkpoint, module);
  const JsonFields fields(config, module.path(kConfig));
  const Range<std::int64_t> tokens{0, vocabulary - 1};
  return {needed_integer_in(fields, "true_token_id", tokens), integer_in(fields, "false_token_id", tokens)};
}

// vLLM's keys, by which the logits of a model that generates text become scores: `classifier_from_token` has the
// tokens, and `method` what is made of their logits.
std::vector<TokenScore> token_scores_of(const JsonFields& fields, const FindToken& find_token) {
  const Json* tokens = fields.value("classifier_from_token");
  if (tokens == nullptr) return {};
  USER_CHECK(tokens->is_array() && !tokens->empty(), "[{}] classifier_from_token must be a list of tokens, but is {}",
             fields.where(), shown_json(*tokens));
  std::vector<TokenScore> scores;
  for (const Json& token : *tokens) {
    const auto id = token.is_string() && find_token ? find_token(token.get_ref<const std::string&>()) : std::nullopt;
    USER_CHECK(id, "[{}] classifier_from_token must have texts of single tokens, but has {}", fields.where(),
               shown_json(token));
    scores.push_back({*id, std::nullopt});
  }
  const std::string method = fields.find_boolean("is_original_qwen3_reranker").value_or(false)
                                 ? "from_2_way_softmax"
                                 : fields.find_text("method").value_or("");
  if (method == "no_post_processing") return scores;
  USER_CHECK(method == "from_2_way_softmax" && scores.size() == 2,
             "[{}] with classifier_from_token, method must be from_2_way_softmax with 2 tokens, or no_post_processing, "
             "but is {} with {}",
             fields.where(), quote(method), scores.size());
  return {{scores[1].token, scores[0].token}};
}

// Their keys are the numbers of the classes.
std::vector<std::string> labels_of(const JsonFields& fields) {
  const Json* names = fields.value("id2label");
  if (names == nullptr) return {};
  USER_CHECK(names->is_object(), "[{}] id2label must be an object, but is {}", fields.where(), shown_json(*names));
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < names->size(); ++i) {
    const auto label = names->find(std::to_string(i));
    USER_CHECK(label != names->end() && label->is_string(),
               "[{}] id2label must have a text for each of 0 to {}, but {}", fields.where(), names->size() - 1,
               label == names->end() ? fmt::format("has none for {}", i) : "has " + shown_json(*label));
    labels.push_back(*label);
  }
  return labels;
}

// The words are transformers'.
ClassActivation activation_of_classes(const JsonFields& fields) {
  const std::string problem = fields.find_text("problem_type").value_or("single_label_classification");
  if (problem == "single_label_classification") return ClassActivation::softmax;
  if (problem == "multi_label_classification") return ClassActivation::sigmoid;
  USER_CHECK(problem == "regression",
             "[{}] problem_type must be single_label_classification, multi_label_classification or regression, but is "
             "{}",
             fields.where(), quote(problem));
  return ClassActivation::none;
}

// The keys of sentence-transformers in config.json. Without them, the score is a probability.
bool has_sigmoid(const JsonFields& fields) {
  auto name = fields.find_text("sbert_ce_default_activation_function");
  if (const auto inner = fields.find_object("sentence_transformers"))
    if (const auto newer = inner->find_text("activation_fn")) name = newer;
  if (!name || name->ends_with(".Sigmoid")) return true;
  USER_CHECK(name->ends_with(".Identity"),
             "[{}] the activation of scores must be Sigmoid or Identity of torch.nn, but is {}", fields.where(),
             quote(*name));
  return false;
}

ScoreConfig config_of_gguf(const Checkpoint& checkpoint, const ModelConfig& config) {
  ScoreConfig scores{.pooling = config.is_causal ? Pooling::last : Pooling::cls};
  const std::string key = fmt::format("{}.classifier.output_labels", checkpoint.architecture());
  if (const auto labels = checkpoint.gguf().find_texts(key)) scores.labels = {labels->begin(), labels->end()};
  return scores;
}

// The message of the role system is the prompt with the default name.
std::string instruction_of(const Checkpoint& checkpoint) {
  const auto text = checkpoint.folder_file(kPromptConfig);
  if (!text) return "";
  const Json config = parse_config_json(*text, kPromptConfig);
  const JsonFields fields(config, kPromptConfig);
  const auto name = fields.find_text("default_prompt_name");
  const auto prompts = fields.find_object("prompts");
  return name && prompts ? prompts->find_text(*name).value_or("") : "";
}

}  // namespace

bool scores_texts(const Checkpoint& checkpoint, const ModelConfig& config, std::span<const SentenceModule> modules) {
  if (checkpoint.is_gguf()) return checkpoint.find(std::string(kLastScoreLayer) + ".weight") != nullptr;
  return config.is_classifier() || token_module(modules) != nullptr;
}

ScoreConfig score_config_of(const Checkpoint& checkpoint, const ModelConfig& config,
                            std::span<const SentenceModule> modules, const FindToken& find_token) {
  if (checkpoint.is_gguf()) return config_of_gguf(checkpoint, config);
  const Json json = parse_config_json(checkpoint.folder_file(kConfig).value_or("{}"), kConfig);
  const JsonFields fields(json, kConfig);
  ScoreConfig scores{.pooling = Pooling::last, .has_sigmoid = has_sigmoid(fields)};
  if (const SentenceModule* module = token_module(modules)) {
    scores.tokens = {token_score_of(checkpoint, *module, config.vocab_size)};
    return scores;
  }
  scores.classes = activation_of_classes(fields);
  scores.labels = labels_of(fields);
  if (config.is_causal) {
    scores.tokens = token_scores_of(fields, find_token);
    // Labels are those of the config that the model has without these keys.
    if (!scores.tokens.empty()) scores.labels.clear();
    return scores;
  }
  constexpr const char* kPooling = "classifier_pooling";
  scores.pooling = pooling_from_text(fields.find_text(kPooling).value_or("cls"), kPooling);
  return scores;
}

std::optional<ScorePrompt> score_prompt_of(const Checkpoint& checkpoint, std::span<const SentenceModule> modules) {
  if (checkpoint.is_gguf()) {
    auto text = checkpoint.chat_template("rerank");
    if (!text) return std::nullopt;
    return ScorePrompt{.source = std::move(*text), .is_plain = true};
  }
  if (token_module(modules) == nullptr) return std::nullopt;
  ScorePrompt prompt{.instruction = instruction_of(checkpoint)};
  std::string name = "default";
  const Json config = parse_config_json(checkpoint.folder_file(kTextConfig).value_or("{}"), kTextConfig);
  const JsonFields fields(config, kTextConfig);
  const auto inner = [](const std::optional<JsonFields>& object, std::string_view key) {
    return object ? object->find_object(key) : std::nullopt;
  };
  if (const auto arguments = inner(fields.find_object("processing_kwargs"), "chat_template"))
    for (const std::string& key : arguments->keys()) {
      if (key == "chat_template") {
        name = arguments->find_text(key).value_or(name);
      } else {
        prompt.arguments[key] = *arguments->value(key);
      }
    }
  if (const auto message = inner(fields.find_object("modality_config"), "message"))
    prompt.has_parts = message->find_text("format") == "structured";
  auto source = checkpoint.chat_template(name);
  if (!source) return std::nullopt;
  prompt.source = std::move(*source);
  return prompt;
}

}  // namespace weft
