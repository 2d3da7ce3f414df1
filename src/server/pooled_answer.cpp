#include "server/pooled_answer.h"

#include <utility>

namespace weft {
namespace {

// Numbers that are written on the I/O thread, and multiply-adds that take as long as writing one.
constexpr std::int64_t kMostNumbersAtOnce = 20'000;
constexpr std::int64_t kMultiplyAddsOfNumber = 50;

// The work of a text's part of the answer, in numbers that are written.
std::int64_t work_of_text(const EmbeddingHead& head) {
  std::int64_t work = head.width;
  for (const DenseLayer& layer : head.layers) work += layer.inputs * layer.outputs / kMultiplyAddsOfNumber;
  return work;
}

}  // namespace

PooledAnswer::PooledAnswer(PreparedRequest prepared, const ServedModel& model, std::string id, Ticket first,
                           std::shared_ptr<HttpReply> reply)
    : RunningRequest(std::move(reply), false),
      prepared_(std::move(prepared)),
      model_(model),
      id_(std::move(id)),
      first_(first),
      pooled_(prepared_.prompts.size()),
      open_(pooled_.size()) {}

std::vector<Sequence> PooledAnswer::begin(std::uint64_t) {
  const auto parameters = std::make_shared<const SamplingParameters>(prepared_.parameters);
  std::vector<Sequence> sequences;
  for (std::size_t i = 0; i < pooled_.size(); ++i)
    sequences.push_back({.ticket = first_ + i,
                         .prompt = prepared_.prompts[i].ids,
                         .parameters = parameters,
                         .priority = prepared_.request.priority.value_or(0),
                         .cache_salt = prepared_.request.cache_salt.value_or(""),
                         .adapter = loaded_adapter(prepared_),
                         .pooling = prepared_.pooling,
                         .second_text = prepared_.prompts[i].second_text});
  return sequences;
}

void PooledAnswer::take(const SequenceEvent& event) {
  if (event.event.finished == FinishReason::failed) return fail(event.event);
  pooled_[event.ticket - first_] = event.event.embedding;
  cached_tokens_ += event.event.cached_tokens;
  if (--open_ > 0) return;
  if (std::ssize(pooled_) * work_of_text(model_.embedding_head) > kMostNumbersAtOnce) return leave_unwritten();
  send_answer(whole_answer());
}

std::vector<Ticket> PooledAnswer::open_tickets() const {
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < pooled_.size(); ++i)
    if (pooled_[i] == nullptr) tickets.push_back(first_ + i);
  return tickets;
}

AnswerUsage PooledAnswer::usage() const {
  AnswerUsage usage;
  for (const PreparedPrompt& prompt : prepared_.prompts) usage.prompt_tokens += std::ssize(*prompt.ids);
  if (model_.answers.has_prompt_details) usage.cached_tokens = cached_tokens_;
  return usage;
}

}  // namespace weft
