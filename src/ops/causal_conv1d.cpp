#include "ops/causal_conv1d.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/recurrent.h"

namespace weft {

std::pair<Value, Value> causal_conv1d(const Value& x, const Value& taps, const Value& bias, const Value& states,
                                      const Value& batch, const Value& slots, CallSite site) {
  return call(site, "causal_conv1d", {x, taps, bias, states, batch, slots}, {});
}

std::pair<Value, Value> causal_conv1d(MaybeInplace, const Value& x, const Value& taps, const Value& bias,
                                      const Value& states, const Value& batch, const Value& slots, CallSite site) {
  return call(site, "causal_conv1d", {x, taps, bias, states, batch, slots}, {}, true);
}

namespace {

std::vector<Meta> results_of_convolution(const OpRequest& request) {
  enum Operand : std::size_t { kX, kTaps, kBias, kStates, kBatch, kSlots };
  const Meta &x = request.operand(kX), &taps = request.operand(kTaps), &states = request.operand(kStates);
  require_floating(x, "causal_conv1d", "x");
  USER_CHECK(x.rank() == 2 && x.shape[1].is_number(), "[causal_conv1d] x must be [tokens, channels], but is {}",
             x.text());
  const Dim channels = x.shape[1];
  USER_CHECK(taps.is_tensor() && taps.dtype == DType::f32 && taps.rank() == 2 && taps.shape[1] == channels &&
                 taps.shape[0].is_number() && taps.shape[0].number() >= 2,
             "[causal_conv1d] taps must be f32[taps, {}] with at least two rows to match x: {}, but is {}",
             channels.text(), x.text(), taps.text());
  if (request.has(kBias)) {
    const Meta& bias = request.operand(kBias);
    USER_CHECK(bias.is_tensor() && bias.dtype == DType::f32 && bias.shape == Shape{channels},
               "[causal_conv1d] bias must be f32[{}] to match x: {}, but is {}", channels.text(), x.text(),
               bias.text());
  }
  const KvLayout& kv = states.kv;
  USER_CHECK(states.kind == MetaKind::kv && kv.dtype == DType::f32 && kv.heads == 1 && Dim(kv.head_dim) == channels &&
                 Dim(kv.state_rows + 1) == taps.shape[0],
             "[causal_conv1d] states must be pages of f32 with one head of {} columns and {} state rows, but is {}",
             channels.text(), taps.shape[0].number() - 1, states.text());
  require_batch_and_slots(request.operand(kBatch), request.operand(kSlots), x.shape[0], "causal_conv1d");
  return {Meta::tensor(x.dtype, x.shape), states};
}

}  // namespace
}  // namespace weft

OP(causal_conv1d) {
  using Typed = std::pair<Value, Value>(const Value&, const Value&, const Value&, const Value&, const Value&,
                                        const Value&, CallSite);
  op.schema(
        "causal_conv1d(Tensor x, Tensor taps, Tensor? bias, Tensor states, Tensor batch, Tensor slots) -> "
        "(Tensor y, Tensor states)")
      .function(static_cast<Typed*>(&weft::causal_conv1d));
  op.gives(results_of_convolution);
  op.allow_inplace().donates("states", 1).splits_as("attention");
  // Sequences that begin, that go on within a block, and that end blocks; channels that do not fill vectors.
  for (const std::int64_t count : {2, 3, 4, 5})
    for (const std::int64_t channels : {32, 37})
      for (const int block : {4, 16}) {
        const KvLayout layout{
            .dtype = DType::f32, .block = block, .heads = 1, .head_dim = channels, .state_rows = count - 1};
        std::vector<SampleTensor> tensors{{"x", {30, channels}},
                                          {"taps", {count, channels}, DType::f32},
                                          SampleTensor::pages("states", layout, 4 * (40 / block + 1)),
                                          SampleTensor::batch("batch", {{1, 33}, {9, 9}, {19, 22}, {1, 1}}, block),
                                          {"slots", {30}, DType::i64, Fill::indices}};
        if (count % 2 == 0) tensors.push_back({"bias", {channels}, DType::f32});
        op.sample(std::move(tensors));
      }
  // Products may be fused with the sums.
  op.tolerance(DType::f32, {.absolute = 2e-6, .relative = 2e-6});
}
