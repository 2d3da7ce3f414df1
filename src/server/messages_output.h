#pragma once

// The content of an answer of /v1/messages: blocks of thinking, text and tool_use. A stream gets the events that lead
// to the same blocks.

#include <cstddef>
#include <functional>
#include <string>

#include "base/json.h"
#include "server/answer_blocks.h"

namespace weft {

class MessagesOutput final : public AnswerBlocks {
 public:
  // `send` gets each event; null for an answer in one piece.
  MessagesOutput(const AnswerBlocksOptions& options, std::function<void(Json event)> send)
      : AnswerBlocks(options, send != nullptr), send_(std::move(send)) {}

  // Of an answer in one piece, complete after finish().
  const Json& content() const { return content_; }

 private:
  void begun() override;
  void send_more(const std::string& text) override;
  void ended(bool is_whole) override;
  void take_broken_call(const AnswerEvent& event) override;

  Json block() const;
  void send(const char* type, Json members) const;

  std::function<void(Json)> send_;
  Json content_ = Json::array();
  std::size_t count_ = 0;  // of blocks that have ended
};

}  // namespace weft
