// causal_conv1d, linear_attention and selective_scan, element by element.

#include <cstring>
#include <vector>

#include "kernels/recurrent_pages.h"
#include "kernels/registry.h"
#include "kernels/strided.h"
#include "tensor/batch.h"
#include "tensor/convert.h"
#include "tensor/reference_math.h"

namespace weft {
namespace {

// Of a result whose rows are contiguous.
void zero_rows(const TensorView& y, std::int64_t first, std::int64_t end) {
  std::memset(y.data + bytes_of(y.dtype, first * y.stride[0]), 0,
              static_cast<std::size_t>(bytes_of(y.dtype, (end - first) * y.stride[0])));
}

void causal_conv1d(const KernelCall& call) {
  const TensorView &x = call.operands[0], &taps = call.operands[1], &bias = call.operands[2];
  const Batch& batch = *call.operands[4].as<Batch>();
  const TensorView &y = call.results[0], &pages = call.results[1];
  const KvLayout& kv = pages.meta->kv;
  check_batch(batch, x.size[0], kv.block, pages.size[0]);
  const std::int64_t channels = x.size[1], before = kv.state_rows;
  const auto tap = [&](std::int64_t j, std::int64_t c) {
    return taps.as<float>()[j * taps.stride[0] + c * taps.stride[1]];
  };
  const auto run_rows = [&](const RecurrentRun& run) {
    if (run.is_padding) return zero_rows(y, run.first_row, run.end_row);
    begin_recurrent_run(run, pages.as<float>(), kv_page_elements(kv), 0, kv_page_elements(kv));
    float* state = pages.as<float>() + run.page * kv_page_elements(kv);
    for (std::int64_t row = run.first_row; row < run.end_row; ++row)
      for (std::int64_t c = 0; c < channels; ++c) {
        const float now = load_float(x.dtype, x.data, row * x.stride[0] + c * x.stride[1]);
        float sum = 0;
        for (std::int64_t j = 0; j < before; ++j) sum += tap(j, c) * state[j * channels + c];
        sum += tap(before, c) * now;
        if (bias.present()) sum += bias.as<float>()[c * bias.stride[0]];
        store_float(y.dtype, y.data, row * y.stride[0] + c * y.stride[1], sum);
        for (std::int64_t j = 0; j + 1 < before; ++j) state[j * channels + c] = state[(j + 1) * channels + c];
        state[(before - 1) * channels + c] = now;
      }
  };
  for (std::int32_t sequence = 0; sequence < batch.sequences; ++sequence)
    for_each_recurrent_run(batch, call.operands[5], sequence, kv.block, run_rows);
}

std::vector<float> elements_of(const TensorView& x, std::int64_t row, std::int64_t head) {
  std::vector<float> elements;
  for (std::int64_t i = 0; i < x.size[2]; ++i)
    elements.push_back(load_float(x.dtype, x.data, row * x.stride[0] + head * x.stride[1] + i * x.stride[2]));
  return elements;
}

void linear_attention(const KernelCall& call) {
  const TensorView &query = call.operands[0], &key = call.operands[1], &value = call.operands[2];
  const TensorView &log_decay = call.operands[3], &beta = call.operands[4];
  const Batch& batch = *call.operands[6].as<Batch>();
  const TensorView &y = call.results[0], &pages = call.results[1];
  const KvLayout& kv = pages.meta->kv;
  check_batch(batch, query.size[0], kv.block, pages.size[0]);
  const auto scale = static_cast<float>(call.attributes.at("scale").real());
  const bool is_delta = call.attributes.at("delta").boolean();
  const std::int64_t heads = value.size[1], shared = heads / key.size[1], columns = kv.head_dim;
  const auto number = [](const TensorView& x, std::int64_t row, std::int64_t head) {
    return x.as<float>()[row * x.stride[0] + head * x.stride[1]];
  };
  const auto run_row = [&](float* state, std::int64_t row, std::int64_t head) {
    const std::vector<float> q = elements_of(query, row, head / shared), k = elements_of(key, row, head / shared),
                             v = elements_of(value, row, head);
    const float decay = reference_exp(number(log_decay, row, head));
    for (std::int64_t c = 0; c < columns; ++c) {
      float stored = 0, sum = 0, change = v[static_cast<std::size_t>(c)];
      for (std::size_t i = 0; i < k.size(); ++i) {
        float& element = state[static_cast<std::int64_t>(i) * columns + c];
        element *= decay;
        stored += k[i] * element;
      }
      change = number(beta, row, head) * (is_delta ? change - stored : change);
      for (std::size_t i = 0; i < k.size(); ++i) {
        float& element = state[static_cast<std::int64_t>(i) * columns + c];
        element += k[i] * change;
        sum += q[i] * element;
      }
      store_float(y.dtype, y.data, row * y.stride[0] + head * y.stride[1] + c * y.stride[2], scale * sum);
    }
  };
  for (std::int32_t sequence = 0; sequence < batch.sequences; ++sequence)
    for_each_recurrent_run(batch, call.operands[7], sequence, kv.block, [&](const RecurrentRun& run) {
      if (run.is_padding) return zero_rows(y, run.first_row, run.end_row);
      begin_recurrent_run(run, pages.as<float>(), kv_page_elements(kv), 0, kv_page_elements(kv));
      for (std::int64_t head = 0; head < heads; ++head) {
        float* state = pages.as<float>() + run.page * kv_page_elements(kv) + head * kv_head_elements(kv);
        for (std::int64_t row = run.first_row; row < run.end_row; ++row) run_row(state, row, head);
      }
    });
}

void selective_scan(const KernelCall& call) {
  const TensorView &x = call.operands[0], &steps = call.operands[1], &decays = call.operands[2];
  const TensorView &input = call.operands[3], &output = call.operands[4];
  const Batch& batch = *call.operands[6].as<Batch>();
  const TensorView &y = call.results[0], &pages = call.results[1];
  const KvLayout& kv = pages.meta->kv;
  check_batch(batch, x.size[0], kv.block, pages.size[0]);
  const std::int64_t channels = x.size[1], state_rows = kv.state_rows;
  const auto number = [](const TensorView& of, std::int64_t row, std::int64_t column) {
    return load_float(of.dtype, of.data, row * of.stride[0] + column * of.stride[1]);
  };
  const auto run_row = [&](float* state, std::int64_t row) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const float step = number(steps, row, c), change = step * number(x, row, c);
      float sum = 0;
      for (std::int64_t n = 0; n < state_rows; ++n) {
        float& element = state[n * channels + c];
        element = reference_exp(step * number(decays, n, c)) * element + number(input, row, n) * change;
        sum += number(output, row, n) * element;
      }
      store_float(y.dtype, y.data, row * y.stride[0] + c * y.stride[1], sum);
    }
  };
  for (std::int32_t sequence = 0; sequence < batch.sequences; ++sequence)
    for_each_recurrent_run(batch, call.operands[7], sequence, kv.block, [&](const RecurrentRun& run) {
      if (run.is_padding) return zero_rows(y, run.first_row, run.end_row);
      begin_recurrent_run(run, pages.as<float>(), kv_page_elements(kv), 0, kv_page_elements(kv));
      float* state = pages.as<float>() + run.page * kv_page_elements(kv);
      for (std::int64_t row = run.first_row; row < run.end_row; ++row) run_row(state, row);
    });
}

}  // namespace
}  // namespace weft

KERNELS(reference, recurrent) {
  registry.add({.op = "causal_conv1d", .provider = "reference", .writes = {3}, .run = causal_conv1d});
  registry.add({.op = "linear_attention", .provider = "reference", .writes = {5}, .run = linear_attention});
  registry.add({.op = "selective_scan", .provider = "reference", .writes = {5}, .run = selective_scan});
}
