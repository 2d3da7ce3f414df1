#pragma once

// The JSON of answers and of events in streams, with the keys of OpenAI's and vLLM's in vLLM's order.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/answer_events.h"
#include "server/api_request.h"
#include "server/running_request.h"
#include "server/served_model.h"

namespace weft {

// The same in all events of an answer.
struct AnswerHead {
  Endpoint endpoint = completions;
  std::string id;  // with cmpl- or chatcmpl-
  std::int64_t created = 0;
  std::string model;
  Json fingerprint;  // a text or null
};

// What an answer says at its end.
struct AnswerEnd {
  const char* reason = "stop";
  Json stop_reason;  // the stop text or the stop token; null for an end token
};

// One of the answers to a request.
struct AnswerChoice {
  std::string text;
  std::string reasoning = {};    // "" if there is none
  std::vector<Json> calls = {};  // tool_calls of the message
  bool is_call_alone = false;    // the answer had to be a call: its content is "" and not null
  std::vector<int> tokens = {};
  Json logprobs = {}, prompt_logprobs = {};  // null: not asked for
  AnswerEnd end = {};
};

struct AnswerUsage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::optional<std::int64_t> cached_tokens;  // of the prompts; nullopt: not shown
};

// Null lists are not asked for.
Json whole_answer(const AnswerHead& head, std::vector<Json> choices, const AnswerUsage& usage,
                  const Json& prompt_logprobs, const Json& prompt_ids, const Json& prompt_text);
Json whole_choice(Endpoint endpoint, std::size_t index, const AnswerChoice& choice, bool has_ids,
                  const Json& prompt_ids);

// The first event of a choice of a chat.
Json role_event(const AnswerHead& head, std::size_t index, const Json& prompt_ids, const Json& prompt_text);
// tool_calls of a message, and of a delta that begins a call: its arguments follow in others.
Json tool_call(const std::string& id, const ToolCall& call);
Json call_begin_delta(std::size_t index, const std::string& id, const std::string& name);
Json call_arguments_delta(std::size_t index, const std::string& arguments);

// The same as text_event, but with this delta of a chat.
Json delta_event(const AnswerHead& head, std::size_t index, Json delta, Json logprobs, const Json& ids,
                 const std::optional<AnswerEnd>& end);
// New text; `end` in the last one of the choice. `logprobs` and the lists of ids may be null.
Json text_event(const AnswerHead& head, std::size_t index, const std::string& text, Json logprobs, const Json& ids,
                const std::optional<AnswerEnd>& end, const Json& prompt_ids);
Json usage_event(const AnswerHead& head, const AnswerUsage& usage);

// Null where the request had no times.
Json metrics_json(const std::optional<SequenceTimes>& times);

// Without the fields that are null in an answer in one piece.
Json usage_json(const AnswerUsage& usage);

// An event of a stream: "event: NAME" if it has a name, "data: {..}" and an empty line.
std::string event_text(const Json& json, std::string_view name = "");
inline constexpr const char* kLastEvent = "data: [DONE]\n\n";

// Of a name of the model, or of an adapter.
Json model_card(const ServedModel& model, const std::string& name, const ServedAdapter* adapter = nullptr);

}  // namespace weft
