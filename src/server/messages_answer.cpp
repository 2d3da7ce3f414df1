#include "server/messages_answer.h"

#include <utility>

namespace weft {

MessagesAnswer::MessagesAnswer(PreparedRequest prepared, const ServedModel& model, const std::string& id, Ticket ticket,
                               std::shared_ptr<HttpReply> reply)
    : BlocksAnswer(std::move(prepared), model, ticket, std::move(reply)),
      id_("msg_" + id),
      model_(model.name_of(this->prepared().adapter)) {}

AnswerBlocks& MessagesAnswer::make_blocks(const AnswerBlocksOptions& options) {
  std::function<void(Json)> send;
  if (is_stream()) send = [this](const Json& event) { send_named(event); };
  return output_.emplace(options, std::move(send));
}

void MessagesAnswer::send_named(const Json& event) { send_event(event, event["type"].get_ref<const std::string&>()); }

void MessagesAnswer::begin_stream() {
  send_named({{"type", "message_start"}, {"message", whole_answer()}});
  send_named({{"type", "ping"}});
}

// All blocks are complete.
void MessagesAnswer::end(const RequestEvent& last) {
  stop_reason_ = stop_reason(last);
  if (stop_reason_ == "stop_sequence")
    stop_sequence_ = prepared().parameters.stop[static_cast<std::size_t>(last.stop_text)];
  if (!is_stream()) return send_whole();
  send_named({{"type", "message_delta"},
              {"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", stop_sequence_}}},
              {"usage", usage()}});
  send_named({{"type", "message_stop"}});
  end_stream();
}

const char* MessagesAnswer::stop_reason(const RequestEvent& last) const {
  if (last.finished == FinishReason::length) {
    const bool is_asked = output_tokens() >= prepared().request.max_tokens.value_or(0);
    return is_asked ? "max_tokens" : "model_context_window_exceeded";
  }
  if (output_->has_whole_call()) return "tool_use";
  return last.stop_text >= 0 ? "stop_sequence" : "end_turn";
}

void MessagesAnswer::cut_stream() {
  cut_blocks();
  send_failure(unavailable("the server is shutting down"));
  end_stream();
}

// The caller ends the stream.
void MessagesAnswer::send_failure(const ApiError& failure) {
  ensure_begun();
  send_named(failure.body(ErrorForm::anthropic));
}

// The tokens of the prompt are those that were found in the prefix cache and the others.
Json MessagesAnswer::usage() const {
  return {{"input_tokens", input_tokens() - cached_tokens()},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached_tokens()},
          {"output_tokens", output_tokens()},
          {"output_tokens_details", {{"thinking_tokens", output_->reasoning_tokens()}}}};
}

// In a stream this is the message as it begins.
Json MessagesAnswer::whole_answer() {
  return {{"id", id_},
          {"type", "message"},
          {"role", "assistant"},
          {"model", model_},
          {"content", output_->content()},
          {"stop_reason", stop_reason_},
          {"stop_sequence", stop_sequence_},
          {"usage", usage()}};
}

}  // namespace weft
