#pragma once

// The items of an answer of /v1/responses: reasoning, messages and function calls. A stream gets the events that lead
// to the same items.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/answer_blocks.h"
#include "server/logprobs_json.h"

namespace weft {

struct ResponsesOutputOptions {
  AnswerBlocksOptions blocks;
  bool has_logprobs = false;
  LogprobsStyle logprobs = {};
};

class ResponsesOutput final : public AnswerBlocks {
 public:
  // `send` gets each event, which has no sequence number yet; null for an answer in one piece.
  ResponsesOutput(const ResponsesOutputOptions& options, std::function<void(Json event)> send)
      : AnswerBlocks(options.blocks, send != nullptr), options_(options), send_(std::move(send)) {}

  // Complete after finish(). Log probabilities are part of it.
  const Json& items() const { return items_; }

 private:
  void begun() override;
  void send_more(const std::string& text) override;
  void ended(bool is_whole) override;
  void hold_logprobs(const TokenLogprobs& logprobs) override;
  void attach_logprobs() override;

  Json item(const char* status, bool has_content) const;
  Json part(const std::string& text, const Json& logprobs) const;
  void send(const char* type, Json members) const;
  void send_part(const char* type, Json members) const;

  ResponsesOutputOptions options_;
  std::function<void(Json)> send_;
  Json items_ = Json::array();
  std::string id_, call_id_;       // of the open item
  Json logprobs_ = Json::array();  // of the open item
  std::size_t sent_logprobs_ = 0;  // of these
  std::vector<TokenLogprobs> held_logprobs_;
};

}  // namespace weft
