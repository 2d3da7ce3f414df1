#pragma once

// POST /v1/responses: one answer as a response of items, in one piece or as a stream.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/blocks_answer.h"
#include "server/responses_output.h"

namespace weft {

class ResponsesAnswer final : public BlocksAnswer {
 public:
  ResponsesAnswer(PreparedRequest prepared, const ServedModel& model, const std::string& id, Ticket ticket,
                  std::shared_ptr<HttpReply> reply);

 private:
  AnswerBlocks& make_blocks(const AnswerBlocksOptions& options) override;
  void begin_stream() override;
  void end(const RequestEvent& last) override;
  Json whole_answer() override { return response(status_, nullptr); }
  void cut_stream() override;
  void send_failure(const ApiError& failure) override;

  void fail_stream(const char* message);
  Json response(const char* status, const Json& error) const;
  Json usage() const;
  void send_numbered(Json event);
  void send_response(const char* type, const char* status, const Json& error = nullptr);

  std::string id_, model_;
  LogprobsStyle logprobs_style_;
  std::optional<ResponsesOutput> output_;  // from begin() on
  const char* status_ = "in_progress";
  std::int64_t created_, completed_ = 0;
  std::int64_t sequence_number_ = 0;
};

}  // namespace weft
