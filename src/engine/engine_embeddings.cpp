// Requests whose hidden states are pooled to an embedding.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "engine/engine.h"

namespace weft {
namespace {

struct PooledRows {
  std::int64_t first = 0, end = 0;
};

// The rows of a chunk whose hidden states count. The chunk begins at the position `begin` of the sequence.
PooledRows pooled_rows(Pooling pooling, std::int64_t begin, std::int64_t rows, bool is_last) {
  switch (pooling) {
    case Pooling::mean:
      return {0, rows};
    case Pooling::cls:
      return {0, begin == 0 ? 1 : 0};
    case Pooling::last:
      break;
  }
  return {rows - 1, is_last ? rows : rows - 1};
}

}  // namespace

// Sums are made token by token, so an embedding does not depend on how the text is cut into chunks.
void Engine::pool(Request& request, const Chunk& chunk, std::int64_t first_hidden) {
  const std::int64_t begin = request.computed - chunk.rows;
  const bool is_last = request.computed == request.token_count();
  const auto width = static_cast<std::size_t>(runner_->facts().config.hidden_size);
  // A sequence that lost its pages begins again.
  if (begin == 0 || request.pooled.empty()) request.pooled.assign(width, 0.0);
  const PooledRows rows = pooled_rows(*request.pooling, begin, chunk.rows, is_last);
  std::vector<float> numbers(width);
  const Tensor hidden = rows.first < rows.end ? runner_->hidden() : Tensor();
  for (std::int64_t row = first_hidden + rows.first; row < first_hidden + rows.end; ++row) {
    runner_->copy_row(hidden, row, numbers);
    for (std::size_t i = 0; i < width; ++i) request.pooled[i] += numbers[i];
  }
  if (!is_last) return;
  const auto count = static_cast<double>(*request.pooling == Pooling::mean ? request.token_count() : 1);
  for (std::size_t i = 0; i < width; ++i) numbers[i] = static_cast<float>(request.pooled[i] / count);
  if (!std::all_of(numbers.begin(), numbers.end(), [](float number) { return std::isfinite(number); }))
    return fail(request, "[embedding] some hidden states are not numbers (NaN), or infinite");
  events_.push_back({.request = request.id,
                     .finished = FinishReason::stop,
                     .cached_tokens = request.cached_tokens,
                     .embedding = std::make_shared<const std::vector<float>>(std::move(numbers))});
  end(request);
}

EmbeddingHead Engine::embedding_head() const {
  const ModelConfig& config = runner_->facts().config;
  LogitHead logits;
  logits.weight = runner_->definition().key(config.tie_word_embeddings ? "token_embd" : "output", config, -1);
  if (has_tokenizer()) logits.find_token = [this](std::string_view text) { return tokenizer().find(text); };
  return embedding_head_of(runner_->checkpoint(), runner_->definition().facts, config, logits);
}

std::vector<float> Engine::embed(const std::vector<int>& prompt, Pooling pooling) {
  std::vector<float> embedding;
  run_alone(
      {.prompt = std::make_shared<const std::vector<int>>(prompt), .parameters = {.max_tokens = 1}, .pooling = pooling},
      [&](const RequestEvent& event) { embedding = *event.embedding; });
  return embedding;
}

}  // namespace weft
