#pragma once

// POST /v1/responses: one answer as a response of items, in one piece or as a stream.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/http_message.h"
#include "server/prepared_request.h"
#include "server/responses_output.h"
#include "server/running_request.h"

namespace weft {

class ResponsesAnswer final : public RunningRequest {
 public:
  ResponsesAnswer(PreparedRequest prepared, const ServedModel& model, const std::string& id, Ticket ticket,
                  std::shared_ptr<HttpReply> reply);

  std::vector<Sequence> begin(std::uint64_t random_seed) override;
  void take(const SequenceEvent& event) override;

  std::vector<Ticket> open_tickets() const override;
  std::size_t size() const override { return 1; }

 private:
  AnswerEvents events_of(const std::string& text);
  void begin_stream();
  void finish(bool is_cut);
  void end(const char* status, Json error = nullptr);
  bool is_large() const;
  Json response(const char* status, const Json& error) const;
  Json usage() const;
  void send_numbered(Json event);
  void send_response(const char* type, const char* status, const Json& error = nullptr);
  Json whole_answer() override { return response(status_, nullptr); }
  void cut_stream() override;
  void send_failure(const ApiError& failure) override;

  PreparedRequest prepared_;
  std::string id_, model_;
  Ticket ticket_;
  LogprobsStyle logprobs_style_;
  std::unique_ptr<AnswerSplitter> splitter_;  // null: all text is content
  std::optional<ResponsesOutput> output_;     // from begin() on
  const char* status_ = "in_progress";
  std::int64_t created_, completed_ = 0;
  std::int64_t token_count_ = 0, unsent_count_ = 0, cached_tokens_ = 0;
  std::int64_t stream_interval_ = 1, sequence_number_ = 0;
  bool has_begun_ = false;  // a stream has sent its first event, and not just a comment
};

}  // namespace weft
