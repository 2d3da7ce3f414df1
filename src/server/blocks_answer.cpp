#include "server/blocks_answer.h"

#include <algorithm>
#include <utility>

namespace weft {

BlocksAnswer::BlocksAnswer(PreparedRequest prepared, const ServedModel& model, Ticket ticket,
                           std::shared_ptr<HttpReply> reply)
    : RunningRequest(std::move(reply), prepared.request.stream.value_or(false), "",
                     error_form(prepared.request.endpoint)),
      prepared_(std::move(prepared)),
      ticket_(ticket),
      splitter_(prepared_.form.splitter(prepared_.request.tools)),
      tokenizer_(model.tokenizer),
      stream_interval_(std::max(model.answers.stream_interval, prepared_.request.stream_interval.value_or(1))) {}

std::vector<Sequence> BlocksAnswer::begin(std::uint64_t random_seed) {
  const AnswerForm& form = prepared_.form;
  blocks_ = &make_blocks({.shows_reasoning = form.shows_reasoning,
                          .has_short_ids = form.dialect != nullptr && form.dialect->has_short_ids,
                          .random_bits = random_seed});
  return {{.ticket = ticket_,
           .prompt = prepared_.prompts[0].ids,
           .parameters = std::make_shared<const SamplingParameters>(prepared_.parameters),
           .seed = prepared_.has_seed ? prepared_.parameters.seed : random_seed,
           .priority = prepared_.request.priority.value_or(0),
           .cache_salt = prepared_.request.cache_salt.value_or(""),
           .adapter = loaded_adapter(prepared_)}};
}

std::vector<Ticket> BlocksAnswer::open_tickets() const {
  return is_over() ? std::vector<Ticket>() : std::vector<Ticket>{ticket_};
}

AnswerEvents BlocksAnswer::events_of(const std::string& text) {
  if (splitter_) return splitter_->push(text);
  AnswerEvents events;
  add_text(events, AnswerEvent::Kind::content, text);
  return events;
}

void BlocksAnswer::take(const SequenceEvent& taken) {
  if (is_over()) return;
  const RequestEvent& event = taken.event;
  if (event.finished == FinishReason::failed) return fail(event);
  cached_tokens_ = event.cached_tokens;
  ensure_begun();
  const bool is_first = token_count_++ == 0;
  if (is_stream()) held_.take(event);
  blocks_->take(events_of(event.text), event.logprobs);
  if (event.finished != FinishReason::none) {
    finish_blocks({}, event.finished == FinishReason::length);
    return end(event);
  }
  // The first event is sent at once, and so is the last.
  if (++unsent_count_ < stream_interval_ && !is_first) return;
  unsent_count_ = 0;
  blocks_->flush();
}

void BlocksAnswer::ensure_begun() {
  if (!is_stream() || has_begun_) return;
  has_begun_ = true;
  begin_stream();
}

// With these last events. All blocks are complete after it.
void BlocksAnswer::finish_blocks(AnswerEvents events, bool is_cut) {
  if (splitter_)
    for (AnswerEvent& event : splitter_->finish()) events.push_back(std::move(event));
  blocks_->finish(events, is_cut);
}

void BlocksAnswer::cut_blocks() {
  ensure_begun();
  finish_blocks(events_of(held_.rest(tokenizer_, *prepared_.prompts[0].ids, prepared_.parameters)), true);
}

void BlocksAnswer::send_whole() {
  if (is_large()) return leave_unwritten();
  send_answer(whole_answer());
}

bool BlocksAnswer::is_large() const {
  const std::optional<std::int64_t>& tops = prepared_.parameters.logprobs;
  const std::int64_t entries = 1 + (tops ? 1 + std::max<std::int64_t>(*tops, 0) : 0);
  return token_count_ * entries > static_cast<std::int64_t>(kMostWrittenAtOnce);
}

}  // namespace weft
