#pragma once

// What a client asks for, as its JSON says, before it meets the model. request_fields.cpp has the table of all fields.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <simdjson.h>

#include "base/json.h"
#include "server/api_error.h"

namespace weft {

// The endpoints that read fields of the table; a row says for which of them it is.
enum Endpoint : unsigned {
  completions = 1,
  chat = 2,
  tokenize = 4,
  detokenize = 8,
  llama_completion = 16,  // of llama.cpp
  apply_template = 32,
  responses = 64,
  anthropic_messages = 128,
  anthropic_count = 256,  // of the tokens of such a request
  embeddings = 512,
  score = 1024,   // of pairs of texts
  rerank = 2048,  // of a text and documents
  classify = 4096,
  raw_pooling = 8192,       // vLLM's /pooling
  llama_embedding = 16384,  // of llama.cpp
  infill = 32768,           // of llama.cpp: the middle of a text
  load_lora = 65536,        // and the next two: LoRA adapters
  unload_lora = 131072,
  lora_scales = 262144,  // of llama.cpp
};

// Whether its answer is made of pooled hidden states, and has no tokens.
constexpr bool is_pooled(Endpoint endpoint) {
  return (endpoint & (embeddings | score | rerank | classify | raw_pooling | llama_embedding)) != 0;
}

// Whether it answers as llama.cpp's /completion does.
constexpr bool is_llama(Endpoint endpoint) { return (endpoint & (llama_completion | infill)) != 0; }

// Whether it answers a conversation, which the model's template writes.
constexpr bool answers_messages(Endpoint endpoint) { return (endpoint & (chat | responses | anthropic_messages)) != 0; }

constexpr bool is_anthropic(Endpoint endpoint) { return (endpoint & (anthropic_messages | anthropic_count)) != 0; }

constexpr ErrorForm error_form(Endpoint endpoint) {
  return is_anthropic(endpoint) ? ErrorForm::anthropic : ErrorForm::openai;
}

using PromptText = std::string;
using PromptIds = std::vector<int>;
using Prompt = std::variant<PromptText, PromptIds>;
using PromptParts = std::vector<std::variant<std::string, int>>;  // texts and token ids, one after the other

// What an answer may do with the tools of its request.
struct ToolChoice {
  enum class Kind : std::uint8_t { none, automatic, required, named };
  Kind kind = Kind::none;
  std::string function;  // of `named`
};

struct ApiRequest {
  Endpoint endpoint = completions;

  std::optional<std::string> model;
  // Of infill: the texts around the answer, and other files with their names.
  std::optional<std::string> input_prefix, input_suffix;
  std::vector<std::pair<std::string, std::string>> input_extra;
  std::vector<Prompt> prompts;
  std::vector<PromptParts> prompt_parts;     // of llama.cpp, for each prompt
  Json messages;                             // null if there are none
  Json response_format, structured_outputs;  // null if not given
  Json documents, template_arguments = Json::object();
  std::optional<std::string> chat_template;
  std::shared_ptr<const ApiError> refusal;  // of the first field that asks for what is not made; null: there is none
  std::optional<std::string> content;       // llama.cpp's name of a text to tokenize
  PromptIds tokens;                         // to detokenize
  Json tools;                               // null if there are none
  std::optional<ToolChoice> tool_choice;
  std::optional<bool> parallel_tool_calls;
  std::optional<std::string> instructions;  // of responses and Anthropic's: the system message before all others
  Json repeated = Json::object();           // of responses: fields that the answer has as they were sent

  std::optional<double> temperature, top_p, min_p, presence_penalty, frequency_penalty, repetition_penalty;
  std::optional<std::int64_t> top_k, seed, max_tokens, max_completion_tokens, n, best_of, priority;
  std::vector<std::string> stop;
  std::vector<int> stop_token_ids;
  std::optional<bool> ignore_eos, include_stop_str_in_output, skip_special_tokens, spaces_between_special_tokens;
  std::optional<std::int64_t> min_tokens;
  std::map<int, double> logit_bias;
  std::vector<std::pair<std::variant<int, std::string>, double>> text_bias;  // llama.cpp's, of ids and texts
  std::optional<std::vector<int>> allowed_token_ids;
  std::vector<std::string> bad_words;

  std::optional<std::int64_t> logprobs;  // of completions
  std::optional<bool> wants_logprobs;    // of chat, where `logprobs` is a flag, and of responses
  std::optional<std::int64_t> top_logprobs, prompt_logprobs, stream_interval;
  std::optional<bool> return_tokens_as_token_ids;
  // llama.cpp's; repeat_penalty is its name of repetition_penalty.
  std::optional<std::int64_t> n_predict, n_probs, repeat_last_n;
  std::optional<double> repeat_penalty;
  std::optional<std::vector<std::string>> samplers;  // in their order, by llama.cpp's names
  std::optional<bool> timings_per_token;
  Json json_schema;                    // null if there is none
  std::optional<std::string> grammar;  // "" is none

  std::optional<bool> stream, include_usage, continuous_usage_stats;
  bool has_stream_options = false;
  std::optional<bool> echo, return_token_ids, return_prompt_text, return_token_strs, with_pieces;
  std::optional<bool> add_special_tokens, add_special, parse_special;
  std::optional<bool> add_generation_prompt, continue_final_message, include_reasoning, enables_thinking;
  std::optional<std::string> reasoning_effort, truncation_side, request_id, cache_salt;
  std::optional<std::int64_t> truncate_prompt_tokens;
  std::optional<std::int64_t> dimensions;      // of embeddings: their first numbers alone
  std::optional<std::string> encoding_format;  // float or base64
  std::optional<bool> normalizes;
  // Of score and rerank: one text or one for each of the others; the documents.
  std::vector<std::string> first_texts, second_texts;
  std::optional<std::int64_t> top_n;                                     // of rerank; 0: all
  std::optional<std::int64_t> max_tokens_per_query, max_tokens_per_doc;  // of each first and second text; 0: all
  std::optional<bool> return_documents;
  std::optional<std::string> instruction;  // of score and rerank, to a model that reads one
  std::optional<std::string> task;         // of raw_pooling
  std::optional<std::string> lora_name, lora_path;
  std::optional<bool> load_inplace;
  std::map<std::int64_t, double> lora;  // llama.cpp's: factors of adapters by their ids; empty: none are asked for
  std::vector<std::string> unknown;     // fields that no row has
};

// Reads the fields of an object. ApiError 400 for fields of the wrong type, up to ten in one message. The table says
// which fields are refused, by 400 or 501, unless they ask for nothing.
ApiRequest read_fields(simdjson::dom::object object, Endpoint endpoint);

// Checks values and their combinations: ApiError 400.
void check_fields(const ApiRequest& request);
// The name of a request's prompts.
const char* prompt_field(const ApiRequest& request);
// ApiError 400 for a token outside of [0, count).
void check_token(int id, std::int64_t count, const char* field);

// The fields of an endpoint, for the sentence about an unknown one.
std::vector<std::string> field_names(Endpoint endpoint);

}  // namespace weft
