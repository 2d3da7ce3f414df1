// The part of ModelRunner that finds where NaNs in logits came from.

#include <cmath>
#include <numeric>

#include "engine/run/model_runner.h"
#include "engine/run/nan_finder.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/convert.h"
#include "tensor/kv_pages.h"

namespace weft {
namespace {

bool row_has_nan(const Tensor& rows, std::int64_t row) {
  const std::int64_t width = rows.meta.shape[1].number();
  for (std::int64_t i = 0; i < width; ++i)
    if (std::isnan(load_float(rows.meta.dtype, rows.data(), row * width + i))) return true;
  return false;
}

// `stream` is the dtype in which keys and values are computed. Where that holds no more than the pages, they were
// infinite before they were stored.
std::string overflow_text(const BadPages& bad, int layer, DType type, DType stream, const char* effect) {
  const bool is_narrow = (type == DType::f16 || type == DType::q8_0) && stream != DType::f16;
  const char* advice = is_narrow              ? "; --kv-cache-dtype bf16 is wider"
                       : stream == DType::f16 ? "; --dtype bf16 is wider"
                                              : "";
  return fmt::format("[kv cache] the {} of token {} in layer {} is beyond what {} holds{}{}",
                     bad.is_key ? "key" : "value", bad.position, layer, dtype_text(is_narrow ? type : stream), effect,
                     advice);
}

}  // namespace

int ModelRunner::layer_of(const BadPages& bad) const { return facts().pages()[bad.pages].layer; }

// Runs the step again, op by op. It writes the values that the KV pages already have, unless kernels round differently.
// Recurrent layers begin with the states that the step left, so what they compute differs.
std::string ModelRunner::find_nan_by_op(const StepInput& input) {
  const auto range = [](const ModelGraph& graph, std::int64_t rows) {
    return graph.ranges[range_of(graph.ranges, rows)];
  };
  const PhaseGraphs& graphs = model_->graphs_of(input.phase);
  NanFinder finder(*context_, range(graphs.forward, input.rows()));
  NanFindingBuilder builder(graphs.facts, model_->definition(), weights(), finder, inputs_of(input));
  const Values results = model_->definition().forward(builder);
  NanFinder head_finder(*context_, range(graphs.head, input.logit_row_count()));
  head_finder.enter("in the head");
  NanFindingBuilder head(graphs.facts, model_->definition(), weights(), head_finder,
                         {{"hidden", results[0].tensor()}, {"rows", input.logit_rows}});
  model_->definition().head(head);
  return finder.first().empty() ? head_finder.first() : finder.first();
}

std::string ModelRunner::describe_overflow(std::span<const std::int32_t> blocks, std::int64_t begin,
                                           std::int64_t end) const {
  if (has_pages_on_device() || facts().kv.dtype != DType::f16) return "";
  const auto bad = find_infinite_key(pages_, blocks, begin, end);
  return bad ? overflow_text(*bad, layer_of(*bad), DType::f16, facts().dtype, "") : "";
}

std::string ModelRunner::describe_overflow_on_device(std::span<const std::int32_t> blocks, std::int64_t tokens) {
  if (!has_pages_on_device() || facts().kv.dtype != DType::f16) return "";
  const auto bad =
      find_in_pages_of_device(blocks, tokens, [&](const Tensor& pages, std::span<const std::int32_t> numbers) {
        return find_infinite_key({&pages, 1}, numbers, 0, tokens);
      });
  return bad ? overflow_text(*bad, layer_of(*bad), DType::f16, facts().dtype, "") : "";
}

// Downloads the pages of the sequence, one layer at a time: the host may not have memory for all pages.
std::optional<BadPages> ModelRunner::find_in_pages_of_device(std::span<const std::int32_t> blocks, std::int64_t tokens,
                                                             const FindInPages& find) {
  const std::int64_t block = facts().kv.block, count = (tokens + block - 1) / block;
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::size_t layer = 0; layer < pages_.size(); ++layer) {
    const KvLayout& layout = pages_[layer].meta.kv;
    const std::int64_t bytes = kv_page_bytes(layout);
    const Tensor here = Tensor::empty(Meta::pages(layout), count);
    for (std::int64_t i = 0; i < count; ++i)
      device_->copy(here.data() + i * bytes, pages_[layer].data() + blocks[static_cast<std::size_t>(i)] * bytes,
                    static_cast<std::size_t>(bytes));
    device_->synchronize();
    auto bad = find(here, numbers);
    if (!bad) continue;
    bad->pages = layer;
    return bad;
  }
  return std::nullopt;
}

std::string ModelRunner::describe_nan(const StepInput& input, std::int64_t row, std::span<const std::int32_t> blocks,
                                      std::int64_t tokens) {
  std::string by_op;
  if (!has_pages_on_device() && context_->log.detail("nan") != Log::Detail::none) {
    const std::string first = find_nan_by_op(input);
    by_op = first.empty() ? "no op has NaN when the step runs op by op" : "the first op with NaN is " + first;
    context_->log.say("nan", Log::Detail::some, by_op);
  }
  const auto find = [&](const Tensor& pages, std::span<const std::int32_t> numbers) {
    return find_bad_pages({&pages, 1}, numbers, tokens);
  };
  const auto bad =
      has_pages_on_device() ? find_in_pages_of_device(blocks, tokens, find) : find_bad_pages(pages_, blocks, tokens);
  if (bad && bad->is_infinite)
    return overflow_text(*bad, layer_of(*bad), facts().kv.dtype, facts().dtype, ", so logits are not numbers");
  const std::int64_t last = facts().config.layer_count - 1;
  std::string where = "the head";
  if (bad) {
    const int layer = layer_of(*bad);
    const std::string before = layer == 0 ? "the embedding" : fmt::format("layer {}", layer - 1);
    where = fmt::format("{} or layer {}, which has NaN among the keys and values of token {}", before, layer,
                        bad->position);
  } else if (row_has_nan(hidden(), input.logit_rows.as<std::int64_t>()[row])) {
    where = fmt::format("layer {}, which is the last one, or the norm after it", last);
  }
  return fmt::format("[logits] some are not numbers (NaN), and the first NaN is the result of {}; {}", where,
                     has_pages_on_device() ? "with --device cpu WEFT_LOGS=+nan finds the op"
                     : by_op.empty()       ? "WEFT_LOGS=+nan finds the op"
                                           : by_op);
}

}  // namespace weft
