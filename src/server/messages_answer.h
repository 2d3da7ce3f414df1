#pragma once

// POST /v1/messages: one answer as a message of Anthropic's API, in one piece or as a stream.

#include <memory>
#include <optional>
#include <string>

#include "server/blocks_answer.h"
#include "server/messages_output.h"

namespace weft {

class MessagesAnswer final : public BlocksAnswer {
 public:
  MessagesAnswer(PreparedRequest prepared, const ServedModel& model, const std::string& id, Ticket ticket,
                 std::shared_ptr<HttpReply> reply);

 private:
  AnswerBlocks& make_blocks(const AnswerBlocksOptions& options) override;
  void begin_stream() override;
  void end(const RequestEvent& last) override;
  Json whole_answer() override;
  void cut_stream() override;
  void send_failure(const ApiError& failure) override;

  const char* stop_reason(const RequestEvent& last) const;
  Json usage() const;
  void send_named(const Json& event);

  std::string id_, model_;
  std::optional<MessagesOutput> output_;  // from begin() on
  Json stop_reason_, stop_sequence_;      // null until the end
};

}  // namespace weft
