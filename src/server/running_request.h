#pragma once

// A request while its sequences run: takes their events and writes the answer, in one piece or as a stream. It lives on
// the I/O thread, except that a large answer is written on another one.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/api_error.h"
#include "server/engine_loop.h"
#include "server/http_message.h"

namespace weft {

// Of a sequence that is over, in seconds.
struct SequenceTimes {
  double queue = 0;       // from its arrival to its first step
  double prefill = 0;     // from there to its first token
  double generation = 0;  // from there to its last one
  std::int64_t tokens = 0;
};

class RunningRequest {
 public:
  virtual ~RunningRequest() = default;

  // The sequences to run, with tickets that follow each other; none if the answer is sent already.
  virtual std::vector<Sequence> begin(std::uint64_t random_seed) = 0;
  virtual void take(const SequenceEvent& event) = 0;
  // Called before the last event of a sequence is taken.
  virtual void take_times(const SequenceTimes&) {}
  // Ends the answer now, because the server ends.
  void abort();
  // Called four times in each interval of --sse-keep-alive-interval; a stream that is silent for it gets a comment.
  void keep_alive();
  // Ends the answer with the error of the event.
  void fail(const RequestEvent& event);

  bool is_over() const { return is_over_; }
  // Whether the answer in one piece is still to be written, which takes too long for the I/O thread: write_answer() may
  // be called on any thread then, and after it send_written() on the I/O thread.
  bool is_unwritten() const { return is_unwritten_; }
  void write_answer();
  void send_written();
  // Tickets of sequences that are not over.
  virtual std::vector<Ticket> open_tickets() const = 0;
  // Number of its tickets.
  virtual std::size_t size() const = 0;
  // Why it failed; "" if it did not. For the log.
  const std::string& error() const { return error_; }

 protected:
  // Tokens and log probabilities of an answer that is written on the I/O thread. More of them would hold up other
  // connections.
  static constexpr std::size_t kMostWrittenAtOnce = 1000;

  // `last_event` ends a stream; "" if there is none.
  RunningRequest(std::shared_ptr<HttpReply> reply, bool is_stream, std::string last_event = "",
                 ErrorForm error_form = ErrorForm::openai);

  bool is_stream() const { return is_stream_; }
  // The answer in one piece.
  void send_answer(const Json& answer);
  virtual Json whole_answer() { return nullptr; }
  // Sends whole_answer() later. The request is over.
  void leave_unwritten() { is_over_ = is_unwritten_ = true; }
  // An event of a stream, which may have a name.
  void send_event(const Json& event, std::string_view name = "");
  void end_stream();

 private:
  // Ends a stream that has sent something.
  virtual void cut_stream() = 0;
  // The last event of such a stream, if the request failed.
  virtual void send_failure(const ApiError& failure) { send_event(failure.body(error_form_)); }
  void write(const std::string& part);

  std::shared_ptr<HttpReply> reply_;
  bool is_stream_;
  std::string last_event_;
  ErrorForm error_form_;
  bool has_head_ = false;     // a stream has sent an event or a comment
  int silent_intervals_ = 0;  // calls of keep_alive() since then
  bool is_over_ = false, is_unwritten_ = false;
  std::string written_;  // by write_answer(); "" if that failed
  std::string error_;
};

}  // namespace weft
