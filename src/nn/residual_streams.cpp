#include "nn/residual_streams.h"

#include "base/error.h"
#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/add.h"
#include "ops/add_scalar.h"
#include "ops/clamp.h"
#include "ops/concat.h"
#include "ops/div.h"
#include "ops/mean.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/sqrt.h"
#include "ops/sub.h"
#include "ops/tanh.h"

namespace weft::nn {
namespace {

using StreamShape = std::vector<std::int64_t>;

StreamShape per_norm_of_router(const ModelConfig& c, int) { return {c.hidden_size}; }
StreamShape stream_router_rows(const ModelConfig& c, int) { return {c.stream_count, c.hidden_size}; }
StreamShape prediction_rows(const ModelConfig& c, int) { return {c.stream_count * c.stream_count, c.stream_count}; }
StreamShape correction_rows(const ModelConfig& c, int) { return {c.stream_count, c.stream_count}; }
StreamShape stream_projections(const ModelConfig& c, int) { return {c.stream_count - 1, c.hidden_size, c.hidden_size}; }

// The root of the mean square of each row, whose square is at least `least`.
Value root_mean_square(const Value& x, std::optional<double> least) {
  const Value square = mean(mul(x, x));
  return sqrt(least ? clamp(square, *least, std::nullopt) : square);
}

// Each row of x with the root mean square of the row of `like`; in f32, as squares may be too large for f16.
Value rescaled(const Value& x, const Value& like) {
  constexpr double kLeast = 1e-5;
  const Value wide = in_dtype(x, DType::f32), wide_like = in_dtype(like, DType::f32);
  const Value scaled = mul(wide, root_mean_square(wide_like, std::nullopt));
  return in_dtype(div(scaled, root_mean_square(wide, kLeast)), x.dtype());
}

// The parts of the product by a stack: of each, [s0, d], the part of x.
Values projected(Builder& builder, const Values& parts, const std::string& weight) {
  const Dim rows = parts[0].dim(0);
  const std::int64_t width = builder.facts.config.hidden_size, count = static_cast<std::int64_t>(parts.size());
  const Value stacked = reshape(concat(parts, -1), {rows, count, width});
  const Value product = reshape(stacked_linear(builder, stacked, weight), {rows, count * width});
  Values projected;
  for (std::int64_t i = 0; i < count; ++i) projected.push_back(slice(product, -1, i * width, (i + 1) * width));
  return projected;
}

// A number in (-1, 1) for each stream and token, [s0, streams].
Value routed(Builder& builder, const Value& x, int layer) {
  const double scale = 1.0 / static_cast<double>(builder.facts.config.hidden_size);
  return tanh(linear(builder, mul_scalar(norm(builder, x, "altup_router_norm", layer), scale), "altup_router", layer));
}

Value column(const Value& x, std::size_t index) {
  const auto at = static_cast<std::int64_t>(index);
  return slice(x, -1, at, at + 1);
}

}  // namespace

void add_residual_streams(WeightTable& weights) {
  const std::string gguf = "blk.{}.", folder = "model.layers.{}.altup.";
  const auto add = [&](const std::string& name, const std::string& in_folder, auto shape) {
    weights.push_back({name, gguf + name + ".weight", folder + in_folder + ".weight", shape});
  };
  add("altup_router", "modality_router", stream_router_rows);
  add("altup_router_norm", "router_norm", per_norm_of_router);
  add("altup_predict_coef", "prediction_coefs", prediction_rows);
  add("altup_correct_coef", "correction_coefs", correction_rows);
  weights.push_back({"altup_proj", "altup_proj.weight", "model.altup_projections.{}.weight", stream_projections});
  weights.push_back({"altup_unembd_proj", "altup_unembd_proj.weight", "model.altup_unembed_projections.{}.weight",
                     stream_projections});
}

Values split_streams(Builder& builder, const Value& x) {
  const auto others = static_cast<std::size_t>(builder.facts.config.stream_count - 1);
  Values streams{x};
  for (const Value& stream : projected(builder, Values(others, x), "altup_proj"))
    streams.push_back(rescaled(stream, x));
  return streams;
}

Values predicted_streams(Builder& builder, const Values& streams, int layer) {
  const Value coefficients = linear(builder, routed(builder, streams[0], layer), "altup_predict_coef", layer);
  Values predicted;
  for (std::size_t to = 0; to < streams.size(); ++to) {
    Value sum = streams[to];
    for (std::size_t from = 0; from < streams.size(); ++from)
      sum = add(sum, mul(streams[from], column(coefficients, to * streams.size() + from)));
    predicted.push_back(sum);
  }
  return predicted;
}

Values corrected_streams(Builder& builder, const Values& predicted, const Value& computed, int layer) {
  const Value coefficients =
      add_scalar(linear(builder, routed(builder, computed, layer), "altup_correct_coef", layer), 1);
  const Value innovation = sub(computed, predicted[0]);
  Values corrected;
  for (std::size_t i = 0; i < predicted.size(); ++i)
    corrected.push_back(add(predicted[i], mul(innovation, column(coefficients, i))));
  return corrected;
}

Value joined_streams(Builder& builder, const Values& streams) {
  Value sum = streams[0];
  for (const Value& stream : projected(builder, {streams.begin() + 1, streams.end()}, "altup_unembd_proj"))
    sum = add(sum, rescaled(stream, streams[0]));
  return mul_scalar(sum, 1.0 / static_cast<double>(streams.size()));
}

void check_residual_streams(const ModelConfig& config) {
  USER_CHECK(config.stream_count >= 2, "[{}] altup_num_inputs must be 2 or more, but is {}", config.architecture,
             config.stream_count);
  USER_CHECK(config.active_stream == 0, "[{}] altup_active_idx must be 0, but is {}", config.architecture,
             config.active_stream);
}

}  // namespace weft::nn
