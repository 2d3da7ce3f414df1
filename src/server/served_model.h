#pragma once

// What the API needs of the model that is served. But for its adapters it does not change, so that several threads may
// use it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "engine/sampling/grammar_constraint.h"
#include "engine/sampling/reasoning_constraint.h"
#include "engine/sampling/sampling_request.h"
#include "io/chat_template.h"
#include "io/embedding_head.h"
#include "io/fill_tokens.h"
#include "server/adapter_table.h"
#include "server/metric_values.h"
#include "server/reasoning.h"
#include "server/score_template.h"
#include "server/tool_calls/dialects.h"

namespace weft {

// What the command line says about all answers.
struct AnswerSettings {
  std::int64_t max_logprobs = 20;    // most tokens for each of `logprobs` and its like; -1: the vocabulary
  std::int64_t stream_interval = 1;  // least tokens of an event, but for the first and the last
  bool tokens_as_ids = false;        // tokens of log probabilities are written as token_id:42
  bool has_prompt_details = false;   // usage says how many tokens of the prompt were cached
  bool has_metrics = false;          // answers of one choice have the times of their request
};

struct ServedModel {
  std::vector<std::string> names;  // aliases in UTF-8; answers have the first
  std::string root;                // as given on the command line, in UTF-8
  std::shared_ptr<AdapterTable> adapters;
  std::int64_t created = 0;  // seconds since 1970
  std::string fingerprint;   // "" is null
  std::int64_t max_model_len = 0;
  std::int64_t vocabulary_size = 0;
  bool generates = true;           // false: there is nothing but embeddings
  std::optional<Pooling> pooling;  // nullopt: there are no embeddings
  EmbeddingHead embedding_head;
  std::optional<ScoreTemplate> score_template;    // of two texts; nullopt: the tokenizer joins them
  std::string missing_score_template;             // why two texts have no prompt; "": they have one
  std::int64_t most_sequences = 0;                // in a step
  std::size_t most_bytes_of_token = 0;            // of prompts; see prompt_length.h
  std::optional<FillTokens> fill_tokens;          // of infill; nullopt: the model cannot
  const Tokenizer* tokenizer = nullptr;           // null for a dummy checkpoint without one
  std::optional<ChatTemplate> chat_template;      // nullopt if the model has none
  std::string missing_template;                   // why there is none
  std::string template_source;                    // of chat_template
  bool trusts_templates = false;                  // a request may have one of its own
  std::optional<ChatTemplate> tool_template;      // of requests with tools, if the model has another one for them
  bool reads_tools = false, reads_calls = false;  // whether that template reads tools, and calls in messages
  bool reads_late_system = false;                 // whether the templates write a system message after others
  const ToolDialect* dialect = nullptr;           // null: calls are not looked for
  const ReasoningFormat* reasoning = nullptr;     // null: reasoning is part of the content
  std::shared_ptr<const ReasoningTokens> reasoning_tokens;  // its markers, or those of channels; null without either
  // Special tokens that are markers of calls and of reasoning: they are shown.
  std::vector<int> call_markers, reasoning_markers;
  Json template_arguments = Json::object();               // variables of the template that requests may override
  std::shared_ptr<const ConstraintCompiler> constraints;  // null without a tokenizer
  SamplingParameters defaults;                            // of what a request does not give
  SamplingParameters llama_defaults;                      // of what one of POST /completion does not give
  AnswerLimits limits;
  AnswerSettings answers;
  InfoLabels cache_config;  // of the metric cache_config_info

  // Whether it is a name of the model, and not of an adapter.
  bool has_own_name(const std::string& name) const;
  // The model's first name, or that of the adapter.
  const std::string& name_of(const ServedAdapterPointer& adapter) const;
};

struct ServedModelSettings {
  std::vector<std::string> names;
  std::string root;
  std::string chat_template;  // as --chat-template
  Json template_arguments = Json::object();
  bool trusts_templates = false;                                               // of requests
  SamplingRequest defaults = {.parameters = {.temperature = 1}, .given = {}};  // OpenAI's, unlike the command line's
  AnswerSettings answers;
  std::string fingerprint_mode = "full";  // or hash, custom or none
  std::string fingerprint_value;          // of custom
  // Names of the tables, which must be known; "auto": by the chat template. "none": nothing is parsed.
  std::string tool_call_parser = "auto", reasoning_parser = "auto";
  std::optional<Pooling> pooling;  // nullopt: as the checkpoint states
};

// UserError where the chat template or the model's generation_config.json is wrong.
ServedModel make_served_model(Engine& engine, const ServedModelSettings& settings);

}  // namespace weft
