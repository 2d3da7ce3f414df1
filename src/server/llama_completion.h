#pragma once

// POST /completion of llama.cpp's server: an answer with its keys, in one piece or as a stream.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/http_message.h"
#include "server/prepared_request.h"
#include "server/running_request.h"

namespace weft {

class LlamaCompletion final : public RunningRequest {
 public:
  LlamaCompletion(PreparedRequest prepared, const ServedModel& model, Ticket ticket, std::shared_ptr<HttpReply> reply);

  std::vector<Sequence> begin(std::uint64_t random_seed) override;
  void take(const SequenceEvent& event) override;
  void abort() override;
  void keep_alive() override;

  bool is_over() const override { return is_over_; }
  std::vector<Ticket> open_tickets() const override;
  std::size_t size() const override { return 1; }
  const std::string& error() const override { return error_; }

 private:
  using Clock = std::chrono::steady_clock;

  void finish(const char* stop_type, const std::string& stopping_word);
  Json part(const std::string& text, int token) const;
  Json last(const char* stop_type, const std::string& stopping_word) const;
  Json settings() const;
  Json timings() const;

  PreparedRequest prepared_;
  std::string model_;
  std::int64_t context_;
  Ticket ticket_;
  std::shared_ptr<HttpReply> reply_;
  bool is_stream_;
  std::uint64_t seed_ = 0;
  std::string text_;
  std::vector<int> tokens_;
  std::int64_t cached_tokens_ = 0;  // of the prompt
  Clock::time_point begun_ = Clock::now(), first_ = begun_, last_ = begun_;
  bool has_sent_ = false;  // a stream has sent an event or a comment
  Silence silence_;
  bool is_over_ = false;
  std::string error_;
};

}  // namespace weft
