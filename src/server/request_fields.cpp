#include "server/request_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "server/embedding_answer.h"
#include "server/field_readers.h"
#include "server/infill_prompt.h"
#include "server/json_body.h"
#include "server/llama_endpoints.h"
#include "server/llama_samplers.h"
#include "server/message_checks.h"
#include "server/messages_input.h"
#include "server/pooled_request.h"
#include "server/responses_input.h"
#include "server/tool_fields.h"
#include "server/value_checks.h"

namespace weft {
namespace {

namespace dom = simdjson::dom;

constexpr unsigned kBoth = completions | chat, kText = completions | chat | tokenize;
constexpr unsigned kPooledText = embeddings | classify | raw_pooling | llama_embedding;
constexpr unsigned kLlama = llama_completion | infill;
constexpr unsigned kPooled = kPooledText | score | rerank;
constexpr unsigned kEncoded = embeddings | raw_pooling;  // answers that are lists of numbers
constexpr unsigned kTemplate = chat | tokenize | apply_template;
// Counts take all fields of the request that they count, and the sampling changes no count.
constexpr unsigned kAnthropic = anthropic_messages | anthropic_count;
constexpr unsigned kOpenAi = kBoth | responses | kAnthropic;
// What /completion of llama.cpp calls as OpenAI does.
constexpr unsigned kAnswer = kOpenAi | kLlama;
constexpr unsigned kStop = kBoth | responses | kLlama;  // `stop`

constexpr const char* kNoSampler =
    "belongs to a sampler that is not implemented; only the value that disables it is accepted";
constexpr const char* kStateless = "nothing is stored here: send the whole conversation";
constexpr const char* kOwnTools = "the tools of this server are functions of the client";
constexpr const char* kNoLogprobs = "a message has no log probabilities: use /v1/chat/completions";
constexpr const char* kStructured = "use structured_outputs";

const FieldRow kRows[] = {
    {"model", kOpenAi | tokenize | detokenize | kLlama | apply_template | kPooled, &ApiRequest::model},
    {"prompt", completions | tokenize, ReadField(read_prompt)},
    {"content", tokenize, &ApiRequest::content},
    {"tokens", detokenize, ReadField(read_tokens)},
    {"messages", kTemplate, ReadField(read_messages)},
    {"documents", kTemplate | responses | kAnthropic, ReadField(read_documents)},
    {"tools", kTemplate, ReadField(read_tools)},
    {"tool_choice", chat | apply_template, ReadField(read_tool_choice)},
    {"parallel_tool_calls", chat | responses, &ApiRequest::parallel_tool_calls},
    {"chat_template_kwargs", kTemplate | responses | kAnthropic, &ApiRequest::template_arguments},
    {"chat_template", kTemplate | responses | kAnthropic, &ApiRequest::chat_template},
    {"add_generation_prompt", kTemplate, &ApiRequest::add_generation_prompt},
    {"continue_final_message", kTemplate, &ApiRequest::continue_final_message},
    {"reasoning_effort", chat | apply_template, &ApiRequest::reasoning_effort},
    {"include_reasoning", chat | apply_template | responses, &ApiRequest::include_reasoning},
    {"add_special_tokens", kText | kPooledText, &ApiRequest::add_special_tokens},
    {"add_special", tokenize, &ApiRequest::add_special},
    {"parse_special", tokenize, &ApiRequest::parse_special},
    {"with_pieces", tokenize, &ApiRequest::with_pieces},
    {"return_token_strs", tokenize, &ApiRequest::return_token_strs},

    {"max_tokens", kBoth | kAnthropic, &ApiRequest::max_tokens, 0},
    {"max_completion_tokens", chat, &ApiRequest::max_completion_tokens, 1},
    {"temperature", kOpenAi, &ApiRequest::temperature, 0, 2},
    {"temperature", kLlama, &ApiRequest::temperature, -1e6, 1e6},  // 0 and less are greedy
    {"top_p", kAnswer, &ApiRequest::top_p, 0, 1, true},
    {"top_k", kAnswer, &ApiRequest::top_k, -1, 2147483647},
    {"min_p", kAnswer, &ApiRequest::min_p, 0, 1},
    {"presence_penalty", kAnswer, &ApiRequest::presence_penalty, -2, 2},
    {"frequency_penalty", kAnswer, &ApiRequest::frequency_penalty, -2, 2},
    {"repetition_penalty", kOpenAi, &ApiRequest::repetition_penalty, 0, 1e18, true},
    {"n", kBoth | kLlama, &ApiRequest::n, 1, 16384},
    {"n_cmpl", kBoth | kLlama, &ApiRequest::n, 1, 16384},  // llama.cpp's name
    {"best_of", completions, &ApiRequest::best_of, 1, 16384},
    {"seed", kAnswer, &ApiRequest::seed},
    {"stop", kStop, ReadField(read_stop)},
    {"stop_token_ids", kOpenAi, ReadField(read_stop_ids)},
    {"ignore_eos", kAnswer, &ApiRequest::ignore_eos},
    {"include_stop_str_in_output", kOpenAi, &ApiRequest::include_stop_str_in_output},
    {"min_tokens", kOpenAi, &ApiRequest::min_tokens, 0},
    {"logit_bias", kOpenAi, ReadField(read_logit_bias)},
    {"allowed_token_ids", kOpenAi, ReadField(read_allowed_ids)},
    {"bad_words", kOpenAi, ReadField(read_bad_words)},
    {"logprobs", completions, &ApiRequest::logprobs, -1},
    {"logprobs", chat, &ApiRequest::wants_logprobs},
    {"top_logprobs", chat | responses, &ApiRequest::top_logprobs, -1},
    {"prompt_logprobs", kBoth, &ApiRequest::prompt_logprobs, -1},
    {"return_tokens_as_token_ids", kBoth | responses, &ApiRequest::return_tokens_as_token_ids},
    {"skip_special_tokens", kOpenAi, &ApiRequest::skip_special_tokens},
    {"spaces_between_special_tokens", kOpenAi, &ApiRequest::spaces_between_special_tokens},
    {"echo", kBoth, &ApiRequest::echo},
    {"stream", kAnswer, &ApiRequest::stream},
    {"stream_options", kBoth | responses, ReadField(read_stream_options)},
    {"stream_interval", kOpenAi, &ApiRequest::stream_interval, 1},
    {"response_format", kBoth, &ApiRequest::response_format},
    {"structured_outputs", kOpenAi, &ApiRequest::structured_outputs},
    {"truncate_prompt_tokens", kOpenAi | kPooled, &ApiRequest::truncate_prompt_tokens, -1},
    {"truncation_side", kOpenAi | kPooledText, ReadField(read_truncation_side)},
    {"return_token_ids", kBoth, &ApiRequest::return_token_ids},
    {"return_prompt_text", chat, &ApiRequest::return_prompt_text},
    {"request_id", kOpenAi | kPooled, &ApiRequest::request_id},
    {"cache_salt", kOpenAi | kPooled, &ApiRequest::cache_salt},
    {"priority", kOpenAi | kPooled, &ApiRequest::priority},

    {"prompt", llama_completion, ReadField(read_prompt_parts)},
    {"prompt", infill, &ApiRequest::content},
    {"input_prefix", infill, &ApiRequest::input_prefix},
    {"input_suffix", infill, &ApiRequest::input_suffix},
    {"input_extra", infill, ReadField(read_input_extra)},
    {"n_predict", kBoth | kLlama, &ApiRequest::n_predict, -1},
    {"max_tokens", kLlama, ReadField(read_other_limit)},
    {"repeat_penalty", kAnswer, &ApiRequest::repeat_penalty, 0, 1e18, true},
    {"repeat_last_n", kAnswer, &ApiRequest::repeat_last_n, -1},
    {"return_tokens", kLlama, &ApiRequest::return_token_ids},
    {"timings_per_token", kLlama, &ApiRequest::timings_per_token},
    {"return_progress", kBoth | kLlama, RefusedField{501, is_false}},
    // Prefixes are found without being asked for, and change no answer.
    {"cache_prompt", kAnswer, IgnoredField{}},
    {"id_slot", kAnswer, IgnoredField{}},
    {"n_keep", kAnswer, IgnoredField{}},
    {"n_discard", kAnswer, IgnoredField{}},
    // Of samplers that are off.
    {"mirostat_tau", kAnswer, IgnoredField{}},
    {"mirostat_eta", kAnswer, IgnoredField{}},
    {"dry_base", kAnswer, IgnoredField{}},
    {"dry_allowed_length", kAnswer, IgnoredField{}},
    {"dry_penalty_last_n", kAnswer, IgnoredField{}},
    {"dry_sequence_breakers", kAnswer, IgnoredField{}},
    {"xtc_threshold", kAnswer, IgnoredField{}},
    {"dynatemp_exponent", kAnswer, IgnoredField{}},
    {"adaptive_decay", kAnswer, IgnoredField{}},
    {"min_keep", kAnswer, RefusedField{400, is_zero, kNoSampler}},
    {"mirostat", kAnswer, RefusedField{400, is_zero, kNoSampler}},
    {"dry_multiplier", kAnswer, RefusedField{400, is_zero, kNoSampler}},
    {"xtc_probability", kAnswer, RefusedField{400, is_zero, kNoSampler}},
    {"typical_p", kAnswer, RefusedField{400, is_one, kNoSampler}},
    {"dynatemp_range", kAnswer, RefusedField{400, is_zero, kNoSampler}},
    {"top_n_sigma", kAnswer, RefusedField{400, is_at_most_zero, kNoSampler}},
    {"adaptive_target", kAnswer, RefusedField{400, is_negative, kNoSampler}},
    {"samplers", kAnswer, ReadField(read_samplers)},
    {"n_probs", kLlama, &ApiRequest::n_probs, 0},
    {"n_probs", kBoth, RefusedField{400, is_zero, "use logprobs"}},
    {"post_sampling_probs", kBoth | kLlama, RefusedField{501, is_false}},
    {"json_schema", kBoth | kLlama, &ApiRequest::json_schema},
    {"grammar", kBoth | kLlama, &ApiRequest::grammar},
    {"grammar_lazy", kBoth | kLlama, RefusedField{501, is_false, "a grammar holds from the first token on"}},
    {"logit_bias", kLlama, ReadField(read_text_bias)},
    {"lora", kBoth | kLlama, ReadField(read_lora_scales)},
    {"response_fields", kBoth | kLlama, RefusedField{501, is_empty}},
    {"n_indent", kBoth | kLlama, RefusedField{501, is_zero}},
    {"t_max_predict_ms", kBoth | kLlama, RefusedField{501, is_at_most_zero}},

    {"lora_name", load_lora | unload_lora, &ApiRequest::lora_name},
    {"lora_path", load_lora, &ApiRequest::lora_path},
    {"load_inplace", load_lora, &ApiRequest::load_inplace},
    {"base_model_name", load_lora, IgnoredField{}},
    {"lora_int_id", load_lora | unload_lora, IgnoredField{}},
    {"is_3d_lora_weight", load_lora, RefusedField{400, is_false, "adapters of experts are not implemented"}},

    {"input", responses, ReadField(read_input)},
    {"instructions", responses, &ApiRequest::instructions},
    {"max_output_tokens", responses, &ApiRequest::max_completion_tokens, 1},
    {"tools", responses, ReadField(read_flat_tools)},
    {"tool_choice", responses, ReadField(read_flat_choice)},
    {"text", responses, ReadField(read_text_options)},
    {"reasoning", responses, ReadField(read_reasoning)},
    {"include", responses, ReadField(read_include)},
    {"truncation", responses, RepeatedField{is_truncation, "auto or disabled"}},
    {"metadata", responses, RepeatedField{is_metadata, "an object of texts"}},
    {"user", responses, RepeatedField{is_text, "a text"}},
    {"safety_identifier", responses, RepeatedField{is_text, "a text"}},
    {"prompt_cache_key", responses, RepeatedField{is_text, "a text"}},
    {"service_tier", responses, IgnoredField{}},
    {"max_tool_calls", responses, IgnoredField{}},  // of tools that a server calls
    {"prompt_cache_retention", responses, IgnoredField{}},
    {"prompt_cache_options", responses, IgnoredField{}},
    {"store", responses, IgnoredField{}},
    {"background", responses, RefusedField{400, is_false, kStateless}},
    {"previous_response_id", responses, RefusedField{400, is_nothing, kStateless}},
    {"conversation", responses, RefusedField{400, is_nothing, kStateless}},
    {"prompt", responses, RefusedField{400, is_nothing, "no prompts are stored here: send the input"}},
    {"context_management", responses, RefusedField{400, is_empty}},
    {"moderation", responses, RefusedField{400, is_nothing}},
    {"n", responses, RefusedField{400, is_one, "a response is one answer"}},
    {"messages", responses, RefusedField{400, is_nothing, "use input"}},
    {"max_tokens", responses, RefusedField{400, is_nothing, "use max_output_tokens"}},
    {"max_completion_tokens", responses, RefusedField{400, is_nothing, "use max_output_tokens"}},
    {"response_format", responses, RefusedField{400, is_nothing, "use text.format"}},
    {"reasoning_effort", responses, RefusedField{400, is_nothing, "use reasoning.effort"}},
    {"n_predict", responses, RefusedField{400, is_negative, "use max_output_tokens"}},
    {"json_schema", responses, RefusedField{400, is_nothing, "use text.format"}},
    {"grammar", responses, RefusedField{400, is_empty, "use structured_outputs"}},
    {"logprobs", responses, RefusedField{400, is_false, "use include with message.output_text.logprobs"}},

    {"messages", kAnthropic, ReadField(read_turns)},
    {"system", kAnthropic, ReadField(read_system)},
    {"stop_sequences", kAnthropic, ReadField(read_stop)},
    {"tools", kAnthropic, ReadField(read_client_tools)},
    {"tool_choice", kAnthropic, ReadField(read_client_choice)},
    {"thinking", kAnthropic, ReadField(read_thinking)},
    {"output_config", kAnthropic, ReadField(read_output_config)},
    {"output_format", kAnthropic, ReadField(read_output_format)},
    {"context_management", kAnthropic, ReadField(read_context_management)},
    // Prefixes are found without being asked for, and change no answer.
    {"cache_control", kAnthropic, IgnoredField{}},
    {"diagnostics", kAnthropic, IgnoredField{}},
    {"metadata", kAnthropic, IgnoredField{}},
    {"service_tier", kAnthropic, IgnoredField{}},
    {"speed", kAnthropic, IgnoredField{}},
    {"inference_geo", kAnthropic, IgnoredField{}},
    {"billing_policy", kAnthropic, IgnoredField{}},
    {"stream_options", kAnthropic, IgnoredField{}},  // a stream always has its usage
    {"container", kAnthropic, RefusedField{400, is_nothing, kOwnTools}},
    {"mcp_servers", kAnthropic, RefusedField{400, is_empty, kOwnTools}},
    {"thread", kAnthropic, RefusedField{400, is_nothing, kStateless}},
    {"compaction", kAnthropic, RefusedField{400, is_nothing}},
    {"prefill", kAnthropic, RefusedField{400, is_nothing, "end messages with a message of the assistant"}},
    {"fallbacks", kAnthropic, RefusedField{400, is_empty}},
    {"n", kAnthropic, RefusedField{400, is_one, "a message is one answer"}},
    {"stop", kAnthropic, RefusedField{400, is_empty, "use stop_sequences"}},
    {"input", kAnthropic, RefusedField{400, is_nothing, "use messages"}},
    {"instructions", kAnthropic, RefusedField{400, is_nothing, "use system"}},
    {"max_completion_tokens", kAnthropic, RefusedField{400, is_nothing, "use max_tokens"}},
    {"max_output_tokens", kAnthropic, RefusedField{400, is_nothing, "use max_tokens"}},
    {"n_predict", kAnthropic, RefusedField{400, is_negative, "use max_tokens"}},
    {"json_schema", kAnthropic, RefusedField{400, is_nothing, "use output_config.format"}},
    {"grammar", kAnthropic, RefusedField{400, is_empty, "use structured_outputs"}},
    {"response_format", kAnthropic, RefusedField{400, is_nothing, "use output_config.format"}},
    {"reasoning_effort", kAnthropic, RefusedField{400, is_nothing, "use output_config.effort"}},
    {"parallel_tool_calls", kAnthropic, RefusedField{400, is_nothing, "use tool_choice.disable_parallel_tool_use"}},
    {"logprobs", kAnthropic, RefusedField{400, is_false, kNoLogprobs}},
    {"top_logprobs", kAnthropic, RefusedField{400, is_zero, kNoLogprobs}},
    {"prompt_logprobs", kAnthropic, RefusedField{400, is_nothing, kNoLogprobs}},

    {"input", kPooledText, ReadField(read_prompt)},
    {"content", llama_embedding, ReadField(read_prompt)},  // as `input`
    {"embd_normalize", llama_embedding, ReadField(read_embedding_norm)},
    {"encoding_format", kEncoded, ReadField(read_encoding)},
    {"dimensions", embeddings, &ApiRequest::dimensions, 1},
    {"dimensions", raw_pooling, RefusedField{400, is_nothing, "use /v1/embeddings"}},
    {"task", raw_pooling, &ApiRequest::task},
    {"normalize", embeddings, &ApiRequest::normalizes},
    {"use_activation", kPooled, &ApiRequest::normalizes},  // vLLM's name; of scores, whether they are probabilities
    {"embed_dtype", kEncoded, RefusedField{501, is_float32, "numbers are float32"}},
    {"endianness", kEncoded, RefusedField{501, is_little_endian, "bytes are little-endian"}},
    {"messages", kPooledText, RefusedField{501, is_nothing, "use input"}},

    // The names of several programs for the same.
    {"text_1", score, ReadField(read_first_texts)},
    {"queries", score, ReadField(read_first_texts)},
    {"data_1", score, ReadField(read_first_texts)},
    {"query", rerank, ReadField(read_first_texts)},
    {"text_2", score, ReadField(read_second_texts)},
    {"items", score, ReadField(read_second_texts)},
    {"data_2", score, ReadField(read_second_texts)},
    {"documents", score | rerank, ReadField(read_second_texts)},
    {"top_n", rerank, &ApiRequest::top_n, 0},
    {"return_documents", rerank, &ApiRequest::return_documents},
    {"max_tokens_per_query", score | rerank, &ApiRequest::max_tokens_per_query, 0},
    {"max_tokens_per_doc", score | rerank, &ApiRequest::max_tokens_per_doc, 0},
    {"instruction", score | rerank, &ApiRequest::instruction},

    {"user", kBoth | kPooled, IgnoredField{}},
    {"session_id", kOpenAi, IgnoredField{}},
    {"vllm_xargs", kOpenAi, IgnoredField{}},
    {"kv_transfer_params", kOpenAi, IgnoredField{}},

    {"use_beam_search", kOpenAi, RefusedField{501, is_false}},
    {"length_penalty", kOpenAi, RefusedField{400, is_one, "it belongs to beam search, which is not there"}},
    {"thinking_token_budget", kOpenAi, RefusedField{400, is_negative, "reasoning has no limit of its own"}},
    {"logprob_token_ids", kOpenAi, RefusedField{400, is_empty, "log probabilities are those of the likeliest tokens"}},
    {"functions", chat, RefusedField{400, is_empty, "use tools"}},
    {"audio", chat, RefusedField{501, is_nothing, "answers are text alone"}},
    {"suffix", completions, RefusedField{400, is_empty, "use /infill, if the model can fill in the middle of a text"}},
    {"repetition_detection", kOpenAi, RefusedField{400, is_nothing}},
    {"guided_json", kOpenAi, RefusedField{400, is_nothing, kStructured}},
    {"guided_regex", kOpenAi, RefusedField{400, is_nothing, kStructured}},
    {"guided_choice", kOpenAi, RefusedField{400, is_nothing, kStructured}},
    {"guided_grammar", kOpenAi, RefusedField{400, is_nothing, kStructured}},
    {"guided_whitespace_pattern", kOpenAi, RefusedField{400, is_nothing, kStructured}},
    {"guided_decoding_backend", kOpenAi, RefusedField{400, is_nothing, kStructured}},
};

}  // namespace

bool read_id(Element value, int& id) {
  constexpr int kLeast = std::numeric_limits<int>::min(), kMost = std::numeric_limits<int>::max();
  std::int64_t number = 0;
  double real = 0;
  if (value.get(number) == simdjson::SUCCESS) {
    id = static_cast<int>(std::clamp<std::int64_t>(number, kLeast, kMost));
    return true;
  }
  // The reader makes a real number of an integer beyond 64 bits.
  if (value.get(real) != simdjson::SUCCESS || std::abs(real) < 9e18) return false;
  id = real < 0 ? kLeast : kMost;
  return true;
}

bool whole_id(std::string_view key, int& id) {
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error == std::errc::result_out_of_range)
    id = key.starts_with('-') ? std::numeric_limits<int>::min() : std::numeric_limits<int>::max();
  return error != std::errc::invalid_argument && end == key.data() + key.size();
}

std::span<const FieldRow> field_table() { return kRows; }

}  // namespace weft
