#pragma once

// One request of completions or chat while it runs, with its answer in one piece or as a stream.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/answer_json.h"
#include "server/held_text.h"
#include "server/http_message.h"
#include "server/logprobs_json.h"
#include "server/prepared_request.h"
#include "server/running_request.h"

namespace weft {

class Generation final : public RunningRequest {
 public:
  // Its sequences have the tickets from `first` on: prompt by prompt, and of each prompt choice by choice.
  Generation(PreparedRequest prepared, const ServedModel& model, const std::string& id, Ticket first,
             std::shared_ptr<HttpReply> reply);

  std::vector<Sequence> begin(std::uint64_t random_seed) override;
  void take(const SequenceEvent& event) override;
  void take_times(const SequenceTimes& times) override;

  std::vector<Ticket> open_tickets() const override;
  std::size_t size() const override { return choices_.size(); }

 private:
  struct Choice {
    // In a stream: what no event has yet.
    std::string text;  // of content, if there is no splitter
    AnswerEvents events;
    std::vector<int> tokens;
    std::vector<TokenLogprobs> logprobs;

    std::unique_ptr<AnswerSplitter> splitter;  // null: all text is content
    AnswerParts parts;                         // what it found
    HeldText held;
    std::size_t calls_begun = 0;  // in events that were sent

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
  void append(std::size_t choice, const RequestEvent& event);
  void add_new_text(std::size_t choice, const std::string& text);
  void add_events(std::size_t choice, AnswerEvents events);
  void end_choice(std::size_t choice, AnswerEnd end);
  Json taken_logprobs(Choice& choice) const;
  std::vector<Json> deltas_of(std::size_t choice, const AnswerEvents& events);
  std::string call_id(std::size_t choice, std::size_t call) const;
  void begin_stream();
  void send(Json json, std::size_t choice, bool is_last = false);
  void send_unsent(std::size_t choice, const std::optional<AnswerEnd>& end);
  void send_text(std::size_t choice, const std::optional<AnswerEnd>& end);
  void send_deltas(std::size_t choice, const std::optional<AnswerEnd>& end);
  AnswerChoice whole(std::size_t choice);
  void finish_all();
  void add_metrics(Json& answer) const;
  bool is_large() const;
  Json whole_answer() override;
  void cut_stream() override;

  PreparedRequest prepared_;
  AnswerHead head_;
  Ticket first_;
  bool has_metrics_;
  std::optional<SequenceTimes> times_;  // of the only sequence, once it is over
  LogprobsStyle logprobs_style_;
  std::vector<std::vector<TokenLogprobs>> prompt_logprobs_;  // of each prompt; empty: not asked for, or not there yet
  std::vector<Choice> choices_;
  std::size_t open_;
  std::uint64_t random_bits_ = 0;  // for the ids of tool calls
  std::int64_t stream_interval_ = 1;
  bool has_ids_, has_usage_event_, has_prompt_details_, echoes_logprobs_;
  bool drops_output_;       // the prompt alone is asked for
  bool has_begun_ = false;  // a stream has sent its first event
};

}  // namespace weft
