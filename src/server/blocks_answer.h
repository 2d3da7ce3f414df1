#pragma once

// A request of one sequence whose answer is written in blocks (answer_blocks.h): what the APIs of such answers share.

#include <cstdint>
#include <memory>
#include <vector>

#include "server/answer_blocks.h"
#include "server/held_text.h"
#include "server/http_message.h"
#include "server/prepared_request.h"
#include "server/running_request.h"

namespace weft {

class BlocksAnswer : public RunningRequest {
 public:
  std::vector<Sequence> begin(std::uint64_t random_seed) override;
  void take(const SequenceEvent& event) override;

  std::vector<Ticket> open_tickets() const override;
  std::size_t size() const override { return 1; }

 protected:
  BlocksAnswer(PreparedRequest prepared, const ServedModel& model, Ticket ticket, std::shared_ptr<HttpReply> reply);

  const PreparedRequest& prepared() const { return prepared_; }
  std::int64_t input_tokens() const { return std::ssize(*prepared_.prompts[0].ids); }
  std::int64_t cached_tokens() const { return cached_tokens_; }
  std::int64_t output_tokens() const { return token_count_; }
  // Sends the first events of a stream, unless that was done.
  void ensure_begun();
  // Ends the blocks of an answer that the server cuts, with the text that was held back.
  void cut_blocks();
  // Sends the answer in one piece, which whole_answer() writes.
  void send_whole();

 private:
  // The blocks of this answer, which the object that derives from this one has.
  virtual AnswerBlocks& make_blocks(const AnswerBlocksOptions& options) = 0;
  virtual void begin_stream() = 0;
  // All blocks are complete. Ends the answer.
  virtual void end(const RequestEvent& last) = 0;

  AnswerEvents events_of(const std::string& text);
  void finish_blocks(AnswerEvents events, bool is_cut);
  bool is_large() const;

  PreparedRequest prepared_;
  Ticket ticket_;
  std::unique_ptr<AnswerSplitter> splitter_;  // null: all text is content
  AnswerBlocks* blocks_ = nullptr;            // from begin() on
  const Tokenizer* tokenizer_;
  HeldText held_;
  std::int64_t token_count_ = 0, unsent_count_ = 0, cached_tokens_ = 0;
  std::int64_t stream_interval_;
  bool has_begun_ = false;  // a stream has sent its first event, and not just a comment
};

}  // namespace weft
