#include "server/embedding_answer.h"

#include <ctime>
#include <string_view>
#include <utility>

#include "base/base64.h"
#include "server/answer_json.h"

namespace weft {
namespace {

// Numbers that are written on the I/O thread.
constexpr std::int64_t kMostNumbersAtOnce = 20'000;

}  // namespace

std::string read_encoding(simdjson::dom::element value, ApiRequest& request) {
  std::string_view format;
  if (value.get(format) != simdjson::SUCCESS || (format != "float" && format != "base64")) return "float or base64";
  request.encoding_format = format;
  return "";
}

EmbeddingAnswer::EmbeddingAnswer(PreparedRequest prepared, const ServedModel& model, std::string id, Ticket first,
                                 std::shared_ptr<HttpReply> reply)
    : RunningRequest(std::move(reply), false),
      prepared_(std::move(prepared)),
      model_(model),
      id_(std::move(id)),
      first_(first),
      embeddings_(prepared_.prompts.size()),
      open_(embeddings_.size()) {}

std::vector<Sequence> EmbeddingAnswer::begin(std::uint64_t) {
  const auto parameters = std::make_shared<const SamplingParameters>(prepared_.parameters);
  std::vector<Sequence> sequences;
  for (std::size_t i = 0; i < embeddings_.size(); ++i)
    sequences.push_back({.ticket = first_ + i,
                         .prompt = prepared_.prompts[i].ids,
                         .parameters = parameters,
                         .priority = prepared_.request.priority.value_or(0),
                         .cache_salt = prepared_.request.cache_salt.value_or(""),
                         .adapter = prepared_.adapter,
                         .pooling = prepared_.pooling});
  return sequences;
}

void EmbeddingAnswer::take(const SequenceEvent& event) {
  if (event.event.finished == FinishReason::failed) return fail(event.event);
  embeddings_[event.ticket - first_] = event.event.embedding;
  cached_tokens_ += event.event.cached_tokens;
  if (--open_ > 0) return;
  if (std::ssize(embeddings_) * model_.hidden_size > kMostNumbersAtOnce) return leave_unwritten();
  send_answer(whole_answer());
}

std::vector<Ticket> EmbeddingAnswer::open_tickets() const {
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < embeddings_.size(); ++i)
    if (embeddings_[i] == nullptr) tickets.push_back(first_ + i);
  return tickets;
}

Json EmbeddingAnswer::written(const std::vector<float>& pooled) const {
  const ApiRequest& request = prepared_.request;
  const std::vector<float> embedding =
      finished_embedding(pooled, request.dimensions, request.normalizes.value_or(true));
  if (request.encoding_format == "base64")
    return encode_base64({reinterpret_cast<const char*>(embedding.data()), embedding.size() * sizeof(float)});
  return embedding_json(embedding);
}

Json EmbeddingAnswer::whole_answer() {
  Json data = Json::array();
  AnswerUsage usage;
  for (std::size_t i = 0; i < embeddings_.size(); ++i) {
    data.push_back({{"index", i}, {"object", "embedding"}, {"embedding", written(*embeddings_[i])}});
    usage.prompt_tokens += std::ssize(*prepared_.prompts[i].ids);
  }
  if (model_.answers.has_prompt_details) usage.cached_tokens = cached_tokens_;
  return {{"id", "embd-" + id_},           {"object", "list"},
          {"created", std::time(nullptr)}, {"model", model_.name_of(prepared_.adapter)},
          {"data", std::move(data)},       {"usage", usage_json(usage)}};
}

}  // namespace weft
