#include "server/generation_table.h"

#include <new>

#include <fmt/format.h>

#include "server/class_answer.h"
#include "server/embedding_answer.h"
#include "server/generation.h"
#include "server/llama_completion.h"
#include "server/messages_answer.h"
#include "server/ranking_answer.h"
#include "server/responses_answer.h"

namespace weft {

GenerationTable::GenerationTable(const ServedModel& model, EngineLoop& loop, MetricValues& values,
                                 std::function<void(const std::string&)> log, WriteLater write_later)
    : model_(model), loop_(loop), values_(values), log_(std::move(log)), write_later_(std::move(write_later)) {}

void GenerationTable::begin(PreparedRequest prepared, const std::string& id, std::uint64_t random_seed,
                            const std::shared_ptr<HttpReply>& reply, MonotonicClock::time_point arrival) {
  const Ticket first = next_ticket_;
  const auto choices = static_cast<double>(prepared.choices);
  const bool is_searched = prepared.form.dialect != nullptr;
  std::shared_ptr<RunningRequest> generation;
  if (is_llama(prepared.request.endpoint)) {
    generation = std::make_shared<LlamaCompletion>(std::move(prepared), model_, first, reply);
  } else if (prepared.request.endpoint == responses) {
    generation = std::make_shared<ResponsesAnswer>(std::move(prepared), model_, id, first, reply);
  } else if (prepared.request.endpoint == anthropic_messages) {
    generation = std::make_shared<MessagesAnswer>(std::move(prepared), model_, id, first, reply);
  } else if (prepared.request.endpoint == classify) {
    generation = std::make_shared<ClassAnswer>(std::move(prepared), model_, id, first, reply);
  } else if ((prepared.request.endpoint & (embeddings | raw_pooling | llama_embedding)) != 0) {
    generation = std::make_shared<EmbeddingAnswer>(std::move(prepared), model_, id, first, reply);
  } else if (is_pooled(prepared.request.endpoint)) {
    generation = std::make_shared<RankingAnswer>(std::move(prepared), model_, id, first, reply);
  } else {
    generation = std::make_shared<Generation>(std::move(prepared), model_, id, first, reply);
  }
  next_ticket_ += generation->size();
  std::vector<Sequence> sequences = generation->begin(random_seed);
  if (sequences.empty()) {
    if (generation->is_unwritten()) write_later_(generation);
    return;
  }
  values_.request_choices.observe(choices);
  if (is_searched) values_.tool_parser_calls += static_cast<double>(sequences.size());
  generations_.emplace(first, std::move(generation));
  try {
    for (const Sequence& sequence : sequences)
      records_.add(sequence.ticket, {.arrival = arrival,
                                     .prompt_tokens = std::ssize(*sequence.prompt),
                                     .max_tokens = sequence.parameters->max_tokens,
                                     .parameters = sequence.parameters});
    reply->on_gone([this, first] { end(first); });
    loop_.submit(std::move(sequences));
  } catch (const std::bad_alloc&) {
    end(first);
    throw;
  }
}

void GenerationTable::cancel(const std::vector<Ticket>& tickets) {
  if (tickets.empty()) return;
  records_.abort(tickets, MonotonicClock::now());
  loop_.cancel(tickets);
}

// Also cancels what of the request still runs.
void GenerationTable::end(Ticket first) {
  const auto found = generations_.find(first);
  if (found == generations_.end()) return;
  const std::shared_ptr<RunningRequest> generation = std::move(found->second);
  generations_.erase(found);
  cancel(generation->open_tickets());
}

void GenerationTable::deliver(const StepReport& report) {
  records_.take(report);
  for (const SequenceEvent& event : report.events) {
    auto found = generations_.upper_bound(event.ticket);
    if (found == generations_.begin()) continue;
    --found;
    const Ticket first = found->first;
    const std::shared_ptr<RunningRequest> generation = found->second;
    if (event.ticket >= first + generation->size()) continue;
    try {
      if (const SequenceTimes* times = records_.ended(event.ticket)) generation->take_times(*times);
      generation->take(event);
      if (!generation->is_over()) continue;
      if (!generation->error().empty()) log_(fmt::format("[server] a request failed: {}", generation->error()));
      if (generation->is_unwritten()) write_later_(generation);
      end(first);
    } catch (const std::bad_alloc&) {
      lose(first, *generation);  // the other events of the report are taken all the same
    }
  }
}

// Without memory for the error, the reply ends the connection when it is destroyed with the generation.
void GenerationTable::lose(Ticket first, RunningRequest& generation) {
  try {
    end(first);
    generation.fail({.error = "the server is short of memory", .cause = FailureCause::answer});
    log_("[server] a request failed: the server is short of memory");
  } catch (const std::bad_alloc&) {
  }
}

void GenerationTable::abort() {
  while (!generations_.empty()) {
    const auto first = generations_.begin();
    const std::vector<Ticket> open = first->second->open_tickets();
    first->second->abort();
    cancel(open);
    generations_.erase(first);
  }
}

void GenerationTable::keep_alive() {
  for (const auto& [first, generation] : generations_) generation->keep_alive();
}

}  // namespace weft
