#pragma once

// An answer as blocks, in the order in which the model wrote them: reasoning, text and calls. The classes that derive
// from it write the blocks as the JSON of an API, and the events of a stream that lead to the same blocks.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/answer_events.h"
#include "server/logprobs_json.h"

namespace weft {

struct AnswerBlocksOptions {
  bool shows_reasoning = true;
  bool has_short_ids = false;     // of calls: 9 letters and digits
  std::uint64_t random_bits = 0;  // for the ids of blocks
};

class AnswerBlocks {
 public:
  virtual ~AnswerBlocks() = default;

  // What one more token made of the answer. A token without events belongs to the next event.
  void take(const AnswerEvents& events, const std::optional<TokenLogprobs>& logprobs);
  // Sends the text that no event has yet.
  void flush();
  // The answer is over. `events` are of the tokens taken before. `is_cut`: the last block is incomplete.
  void finish(const AnswerEvents& events, bool is_cut);

  std::int64_t reasoning_tokens() const { return reasoning_tokens_; }
  bool has_whole_call() const { return has_whole_call_; }

 protected:
  enum class Kind : std::uint8_t { none, reasoning, text, call };
  struct Block {
    Kind kind = Kind::none;
    std::string name;  // of a call
    std::string text;  // or arguments
  };

  // `sends` says whether the answer is a stream.
  AnswerBlocks(const AnswerBlocksOptions& options, bool sends) : options_(options), sends_(sends) {}

  bool sends() const { return sends_; }
  // The block that is not complete yet.
  const Block& open() const { return open_; }
  // Of the open block. `what` is another word for each of its ids.
  std::string new_id(std::string_view what) const;
  std::string new_call_id(const std::string& prefix) const;

  // Adds text to a block of this kind: to the open one, if it is of this kind.
  void add_text(Kind kind, std::string_view text);
  // Leaves the open block out of the answer.
  void drop_open();
  virtual void take_broken_call(const AnswerEvent& event);

 private:
  // The open block has begun, without a text.
  virtual void begun() = 0;
  // A stream sends what the open block has got since the last call.
  virtual void send_more(const std::string& text) = 0;
  // The open block is complete, or all there is of it, and nothing of it is unsent.
  virtual void ended(bool is_whole) = 0;
  // Log probabilities of tokens, which belong to the open block from attach_logprobs() on.
  virtual void hold_logprobs(const TokenLogprobs&) {}
  virtual void attach_logprobs() {}

  void add(const AnswerEvent& event);
  void count_tokens(AnswerEvent::Kind last);
  void begin(Kind kind, std::string_view name = "");
  void end(bool is_whole);

  AnswerBlocksOptions options_;
  bool sends_;
  Block open_;
  std::size_t block_count_ = 0;  // that have ended
  std::size_t sent_text_ = 0;    // of the open block
  bool has_whole_call_ = false;

  std::int64_t waiting_tokens_ = 0;  // without an event
  std::int64_t reasoning_tokens_ = 0;
  bool is_reasoning_ = false;  // the last event was of reasoning
};

}  // namespace weft
