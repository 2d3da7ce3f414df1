#pragma once

// The items of an answer of /v1/responses: reasoning, messages and function calls, in the order in which the model
// wrote them. A stream gets the events that lead to the same items.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/answer_events.h"
#include "server/logprobs_json.h"

namespace weft {

struct ResponsesOutputOptions {
  bool shows_reasoning = true;
  bool has_logprobs = false;
  LogprobsStyle logprobs = {};
  bool has_short_ids = false;     // of calls: 9 letters and digits
  std::uint64_t random_bits = 0;  // for the ids of items
};

class ResponsesOutput {
 public:
  // `send` gets each event, which has no sequence number yet; null for an answer in one piece.
  ResponsesOutput(const ResponsesOutputOptions& options, std::function<void(Json event)> send)
      : options_(options), send_(std::move(send)) {}

  // What one more token made of the answer. A token without events belongs to the next event.
  void take(const AnswerEvents& events, const std::optional<TokenLogprobs>& logprobs);
  // Sends the text that no event has yet.
  void flush();
  // The answer is over. `events` are of the tokens taken before. `is_cut`: the last item is incomplete.
  void finish(const AnswerEvents& events, bool is_cut);

  // Complete after finish(). Log probabilities are part of it.
  const Json& items() const { return items_; }
  std::int64_t reasoning_tokens() const { return reasoning_tokens_; }

 private:
  enum class Kind : std::uint8_t { none, reasoning, message, call };
  struct Open {
    Kind kind = Kind::none;
    std::string id, call_id, name;
    std::string text;  // or arguments
    Json logprobs = Json::array();
  };

  void add(const AnswerEvent& event);
  void count_tokens(AnswerEvent::Kind last);
  void take_logprobs();
  void add_text(Kind kind, std::string_view text);
  void begin(Kind kind, std::string_view name = "");
  void end(const char* status);
  std::string new_id(std::string_view prefix, std::string_view what) const;
  Json item(const char* status, bool has_content) const;
  Json part(const std::string& text, const Json& logprobs) const;
  void send(const char* type, Json members) const;
  void send_part(const char* type, Json members) const;

  ResponsesOutputOptions options_;
  std::function<void(Json)> send_;
  Json items_ = Json::array();
  Open open_;
  std::size_t sent_text_ = 0, sent_logprobs_ = 0;  // of the open item

  std::vector<TokenLogprobs> waiting_logprobs_;  // of tokens without an event
  std::int64_t waiting_tokens_ = 0;
  std::int64_t reasoning_tokens_ = 0;
  bool is_reasoning_ = false;  // the last event was of reasoning
};

}  // namespace weft
