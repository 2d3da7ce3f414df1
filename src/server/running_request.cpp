#include "server/running_request.h"

#include <exception>
#include <utility>

#include "server/answer_json.h"

namespace weft {

RunningRequest::RunningRequest(std::shared_ptr<HttpReply> reply, bool is_stream, std::string last_event,
                               ErrorForm error_form)
    : reply_(std::move(reply)), is_stream_(is_stream), last_event_(std::move(last_event)), error_form_(error_form) {}

void RunningRequest::write(const std::string& part) {
  reply_->send_event(part);
  has_head_ = true;
  silent_intervals_ = 0;
}

void RunningRequest::send_answer(const Json& answer) {
  is_over_ = true;
  reply_->send({.body = json_text(answer)});
}

// A thread of the pool must not end by an exception, such as that of memory for a very large answer.
void RunningRequest::write_answer() {
  try {
    written_ = json_text(whole_answer());
  } catch (const std::exception&) {
    written_.clear();
  }
}

void RunningRequest::send_written() {
  if (written_.empty()) return reply_->send(internal_error("the answer could not be written").response(error_form_));
  reply_->send({.body = std::move(written_)});
}

void RunningRequest::send_event(const Json& event, std::string_view name) { write(event_text(event, name)); }

void RunningRequest::end_stream() {
  is_over_ = true;
  if (!last_event_.empty()) write(last_event_);
  reply_->end();
}

void RunningRequest::fail(const RequestEvent& event) {
  is_over_ = true;
  error_ = event.error;
  const bool may_be_told = event.cause == FailureCause::answer;
  const ApiError failure = internal_error(may_be_told ? error_ : "the model failed to compute this answer");
  if (!has_head_) return reply_->send(failure.response(error_form_));
  send_failure(failure);
  end_stream();
}

void RunningRequest::abort() {
  if (is_over_) return;
  if (has_head_) return cut_stream();
  is_over_ = true;
  reply_->send(unavailable("the server is shutting down").response(error_form_));
}

void RunningRequest::keep_alive() {
  constexpr int kMostSilentIntervals = 4;
  if (!is_stream_ || is_over_ || ++silent_intervals_ < kMostSilentIntervals) return;
  write(": keep-alive\n\n");
}

}  // namespace weft
