#pragma once

// POST /completion of llama.cpp's server: an answer with its keys, in one piece or as a stream.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/held_text.h"
#include "server/http_message.h"
#include "server/prepared_request.h"
#include "server/running_request.h"

namespace weft {

class LlamaCompletion final : public RunningRequest {
 public:
  LlamaCompletion(PreparedRequest prepared, const ServedModel& model, Ticket ticket, std::shared_ptr<HttpReply> reply);

  std::vector<Sequence> begin(std::uint64_t random_seed) override;
  void take(const SequenceEvent& event) override;

  std::vector<Ticket> open_tickets() const override;
  std::size_t size() const override { return 1; }

 private:
  void finish(const char* stop_type, const std::string& stopping_word);
  void cut_stream() override;
  Json part(const RequestEvent& event) const;
  Json probabilities(std::span<const TokenLogprobs> tokens) const;
  Json last(const char* stop_type, const std::string& stopping_word) const;
  Json settings() const;
  Json timings() const;

  PreparedRequest prepared_;
  std::string model_;
  const Tokenizer* tokenizer_;
  std::int64_t context_;
  Ticket ticket_;
  std::uint64_t seed_ = 0;
  std::string text_;
  HeldText held_;
  std::string cut_text_;  // of a stream: what was held back when the server cut it
  std::vector<int> tokens_;
  std::vector<TokenLogprobs> logprobs_;  // of an answer in one piece
  std::int64_t cached_tokens_ = 0;       // of the prompt
  MonotonicClock::time_point begun_ = MonotonicClock::now(), first_ = begun_, last_ = begun_;
};

}  // namespace weft
