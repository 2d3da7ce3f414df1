// Requests whose hidden states are pooled to an embedding.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "engine/engine.h"
#include "tensor/convert.h"

namespace weft {
namespace {

struct Rows {
  std::int64_t first = 0, end = 0;
};

// The rows of a chunk whose hidden states count. The chunk begins at the position `begin` of the sequence.
Rows pooled_rows(Pooling pooling, std::int64_t begin, std::int64_t rows, bool is_last) {
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
  const Tensor hidden = runner_->hidden();
  const std::int64_t width = hidden.meta.shape[1].number();
  // A sequence that lost its pages begins again.
  if (begin == 0 || request.pooled.empty()) request.pooled.assign(static_cast<std::size_t>(width), 0.0);
  std::vector<float> numbers(static_cast<std::size_t>(width));
  const Rows rows = pooled_rows(*request.pooling, begin, chunk.rows, is_last);
  for (std::int64_t row = first_hidden + rows.first; row < first_hidden + rows.end; ++row) {
    convert_row(hidden.meta.dtype, hidden.data() + bytes_of(hidden.meta.dtype, row * width), DType::f32,
                reinterpret_cast<std::byte*>(numbers.data()), width);
    for (std::size_t i = 0; i < numbers.size(); ++i) request.pooled[i] += numbers[i];
  }
  if (!is_last) return;
  const auto count = static_cast<double>(*request.pooling == Pooling::mean ? request.token_count() : 1);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(request.pooled[i] / count);
  if (!std::all_of(numbers.begin(), numbers.end(), [](float number) { return std::isfinite(number); }))
    return fail(request, "[embedding] some hidden states are not numbers (NaN), or infinite");
  events_.push_back({.request = request.id,
                     .finished = FinishReason::stop,
                     .cached_tokens = request.cached_tokens,
                     .embedding = std::make_shared<const std::vector<float>>(std::move(numbers))});
  scheduler_.publish_end(request);
  cancel(request.id);
}

std::vector<float> Engine::embed(const std::vector<int>& prompt, Pooling pooling) {
  CHECK(is_idle(), "embed runs one request alone");
  const int id = add({.prompt = std::make_shared<const std::vector<int>>(prompt),
                      .parameters = {.max_tokens = 1},
                      .pooling = pooling});
  struct Added {
    Engine& engine;
    int id;
    ~Added() { engine.cancel(id); }  // does nothing if the request is finished
  } const added{*this, id};
  std::vector<float> embedding;
  while (!is_idle()) {
    for (const RequestEvent& event : step()) {
      if (event.finished == FinishReason::failed) fail_by(event);
      embedding = *event.embedding;
    }
  }
  return embedding;
}

}  // namespace weft
