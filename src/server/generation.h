#pragma once

// One request of completions or chat while it runs: takes the events of its sequences and writes its answer, in one
// piece or as a stream. It lives on the I/O thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/answer_json.h"
#include "server/engine_loop.h"
#include "server/http_message.h"
#include "server/logprobs_json.h"
#include "server/prepared_request.h"

namespace weft {

class Generation {
 public:
  // Its sequences have the tickets from `first` on: prompt by prompt, and of each prompt choice by choice.
  Generation(PreparedRequest prepared, const ServedModel& model, const std::string& id, Ticket first,
             std::shared_ptr<HttpReply> reply);

  // The sequences to run; none if the request asks for nothing of the model, and then the answer is sent already.
  std::vector<Sequence> begin(std::uint64_t random_seed);
  void take(const SequenceEvent& event);
  // Ends the answer now, because the server ends.
  void abort();
  // Called in regular intervals; sends a comment in a stream that had no event for four of them.
  void keep_alive();

  bool is_over() const { return is_over_; }
  // Tickets of sequences that are not over.
  std::vector<Ticket> open_tickets() const;
  std::size_t size() const { return choices_.size(); }
  // Why it failed; "" if it did not. For the log.
  const std::string& error() const { return error_; }

 private:
  struct Choice {
    // In a stream: what no event has yet.
    std::string text;
    std::vector<int> tokens;
    std::vector<TokenLogprobs> logprobs;

    AnswerEnd end;
    std::int64_t token_count = 0, unsent_count = 0;
    std::int64_t text_offset = 0;    // of the next token's log probability
    std::int64_t cached_tokens = 0;  // of the prompt
    bool has_event = false;          // of a stream, with text
    bool is_over = false;
  };

  std::size_t prompt_index(std::size_t choice) const;
  const PreparedPrompt& prompt_of(std::size_t choice) const;
  bool is_first_of_prompt(std::size_t choice) const;
  Json prompt_ids_of(std::size_t choice) const;
  AnswerUsage usage() const;
  AnswerEnd end_of(const RequestEvent& event) const;
  void append(std::size_t index, const RequestEvent& event);
  Json taken_logprobs(Choice& choice) const;
  void begin_stream();
  void send(Json json, std::size_t choice, bool is_last = false);
  void send_text(std::size_t choice, const std::optional<AnswerEnd>& end);
  void finish(std::size_t choice, const AnswerEnd& end);
  void finish_all();
  void fail(const std::string& error);

  PreparedRequest prepared_;
  AnswerHead head_;
  Ticket first_;
  std::shared_ptr<HttpReply> reply_;
  LogprobsStyle logprobs_style_;
  std::vector<std::vector<TokenLogprobs>> prompt_logprobs_;  // of each prompt; empty: not asked for, or not there yet
  std::vector<Choice> choices_;
  std::size_t open_;
  std::int64_t stream_interval_ = 1;
  bool is_stream_, has_ids_, has_usage_event_, has_prompt_details_, echoes_logprobs_;
  bool drops_output_;       // the prompt alone is asked for
  bool has_begun_ = false;  // a stream has sent its first event
  bool has_head_ = false;   // a stream has sent an event or a comment
  int silent_intervals_ = 0;
  bool is_over_ = false;
  std::string error_;
};

}  // namespace weft
