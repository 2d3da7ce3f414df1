#pragma once

// One request of completions or chat while it runs, with its answer in one piece or as a stream.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/answer_json.h"
#include "server/http_message.h"
#include "server/prepared_request.h"
#include "server/running_request.h"

namespace weft {

class Generation final : public RunningRequest {
 public:
  // Its sequences have the tickets from `first` on: prompt by prompt, and of each prompt choice by choice.
  Generation(PreparedRequest prepared, const ServedModel& model, const std::string& id, Ticket first,
             std::shared_ptr<HttpReply> reply);

  // None if the request asks for no tokens.
  std::vector<Sequence> begin(std::uint64_t random_seed) override;
  void take(const SequenceEvent& event) override;
  void abort() override;

  bool is_over() const override { return is_over_; }
  std::vector<Ticket> open_tickets() const override;
  std::size_t size() const override { return choices_.size(); }
  const std::string& error() const override { return error_; }

 private:
  struct Choice {
    AnswerChoice answer;
    std::unique_ptr<AnswerSplitter> splitter;  // null: all text is content
    AnswerParts parts;                         // what it found
    std::size_t calls_begun = 0;
    std::int64_t tokens = 0;
    bool has_event = false;  // of a stream, with text
    bool is_over = false;
  };

  const PreparedPrompt& prompt_of(std::size_t choice) const;
  bool is_first_of_prompt(std::size_t choice) const;
  Json prompt_ids_of(std::size_t choice) const;
  AnswerUsage usage() const;
  AnswerEnd end_of(const RequestEvent& event) const;
  void take_text(std::size_t choice, const std::string& text, const std::vector<int>& tokens,
                 std::optional<AnswerEnd> end);
  std::vector<Json> deltas_of(std::size_t choice, const AnswerEvents& events);
  std::string call_id(std::size_t choice, std::size_t call) const;
  void begin_stream();
  void send(Json json, std::size_t choice, bool is_last = false);
  void send_text(std::size_t choice, const std::string& text, const std::vector<int>& tokens,
                 const std::optional<AnswerEnd>& end);
  void send_deltas(std::size_t choice, std::vector<Json> deltas, const std::vector<int>& tokens,
                   const std::optional<AnswerEnd>& end);
  void finish(std::size_t choice, const AnswerEnd& end);
  void set_parts(std::size_t choice);
  void finish_all();
  void fail(const std::string& error);

  PreparedRequest prepared_;
  AnswerHead head_;
  Ticket first_;
  std::shared_ptr<HttpReply> reply_;
  std::vector<Choice> choices_;
  std::size_t open_;
  bool is_stream_, has_ids_, has_usage_event_;
  std::uint64_t random_bits_ = 0;  // for the ids of tool calls
  bool has_begun_ = false;         // a stream has sent its first event
  bool is_over_ = false;
  std::string error_;
};

}  // namespace weft
