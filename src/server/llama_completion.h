#pragma once

// POST /completion of llama.cpp's server: an answer with its keys, in one piece or as a stream. Several prompts, or
// several answers to each, are a list of such answers.

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
  // Its sequences have the tickets from `first` on.
  LlamaCompletion(PreparedRequest prepared, const ServedModel& model, Ticket first, std::shared_ptr<HttpReply> reply);

  std::vector<Sequence> begin(std::uint64_t random_seed) override;
  void take(const SequenceEvent& event) override;

  std::vector<Ticket> open_tickets() const override;
  std::size_t size() const override { return answers_.size(); }

 private:
  struct Answer {
    std::string text;
    HeldText held;
    std::string cut_text;  // of a stream: what was held back when the server cut it
    std::vector<int> tokens;
    std::vector<TokenLogprobs> logprobs;  // of an answer in one piece
    std::int64_t cached_tokens = 0;       // of the prompt
    MonotonicClock::time_point first, last;
    const char* stop_type = nullptr;  // null: it is not over
    std::string stopping_word;
  };

  void finish(std::size_t index, const char* stop_type, const std::string& stopping_word);
  void cut_stream() override;
  Json whole_answer() override;
  const PreparedPrompt& prompt_of(std::size_t index) const;
  std::uint64_t seed_of(std::size_t index) const;
  Json part(std::size_t index, const RequestEvent& event) const;
  Json probabilities(std::span<const TokenLogprobs> tokens) const;
  Json last(std::size_t index) const;
  Json settings(std::size_t index) const;
  Json timings(std::size_t index) const;

  PreparedRequest prepared_;
  std::string model_;
  const Tokenizer* tokenizer_;
  std::int64_t context_;
  Ticket first_ticket_;
  std::uint64_t seed_ = 0;
  MonotonicClock::time_point begun_ = MonotonicClock::now();
  std::vector<Answer> answers_;  // those of the first prompt are first
  std::size_t open_ = 0;
};

}  // namespace weft
