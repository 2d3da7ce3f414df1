#include "ops/selective_scan.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/recurrent.h"

namespace weft {

std::pair<Value, Value> selective_scan(const Value& x, const Value& step, const Value& decay, const Value& input,
                                       const Value& output, const Value& states, const Value& batch, const Value& slots,
                                       CallSite site) {
  return call(site, "selective_scan", {x, step, decay, input, output, states, batch, slots}, {});
}

std::pair<Value, Value> selective_scan(MaybeInplace, const Value& x, const Value& step, const Value& decay,
                                       const Value& input, const Value& output, const Value& states, const Value& batch,
                                       const Value& slots, CallSite site) {
  return call(site, "selective_scan", {x, step, decay, input, output, states, batch, slots}, {}, true);
}

namespace {

std::vector<Meta> results_of_selective_scan(const OpRequest& request) {
  enum Operand : std::size_t { kX, kStep, kDecay, kInput, kOutput, kStates, kBatch, kSlots };
  const Meta &x = request.operand(kX), &step = request.operand(kStep), &decay = request.operand(kDecay);
  require_floating(x, "selective_scan", "x");
  USER_CHECK(x.rank() == 2 && x.shape[1].is_number(), "[selective_scan] x must be [tokens, channels], but is {}",
             x.text());
  USER_CHECK(step.is_tensor() && step.dtype == DType::f32 && step.shape == x.shape,
             "[selective_scan] step must be f32[{}, {}] to match x: {}, but is {}", x.shape[0].text(),
             x.shape[1].text(), x.text(), step.text());
  USER_CHECK(decay.is_tensor() && decay.dtype == DType::f32 && decay.rank() == 2 && decay.shape[0].is_number() &&
                 decay.shape[1] == x.shape[1],
             "[selective_scan] decay must be f32[state, {}] to match x: {}, but is {}", x.shape[1].text(), x.text(),
             decay.text());
  for (const auto& [at, name] : {std::pair(kInput, "input"), {kOutput, "output"}}) {
    const Meta& meta = request.operand(at);
    USER_CHECK(meta.is_tensor() && meta.dtype == x.dtype && meta.shape == Shape({x.shape[0], decay.shape[0]}),
               "[selective_scan] {} must be {}[{}, {}] to match x and decay: {} and {}, but is {}", name,
               dtype_text(x.dtype), x.shape[0].text(), decay.shape[0].text(), x.text(), decay.text(), meta.text());
  }
  const Meta& states = request.operand(kStates);
  const KvLayout& kv = states.kv;
  USER_CHECK(states.kind == MetaKind::kv && kv.dtype == DType::f32 && kv.heads == 1 &&
                 Dim(kv.state_rows) == decay.shape[0] && Dim(kv.head_dim) == x.shape[1],
             "[selective_scan] states must be pages of f32 with a head, {} state rows and {} columns, but is {}",
             decay.shape[0].text(), x.shape[1].text(), states.text());
  require_batch_and_slots(request.operand(kBatch), request.operand(kSlots), x.shape[0], "selective_scan");
  return {Meta::tensor(x.dtype, x.shape), states};
}

}  // namespace
}  // namespace weft

OP(selective_scan) {
  using Typed = std::pair<Value, Value>(const Value&, const Value&, const Value&, const Value&, const Value&,
                                        const Value&, const Value&, const Value&, CallSite);
  op.schema(
        "selective_scan(Tensor x, Tensor step, Tensor decay, Tensor input, Tensor output, Tensor states, Tensor batch, "
        "Tensor slots) -> (Tensor y, Tensor states)")
      .function(static_cast<Typed*>(&weft::selective_scan));
  op.gives(results_of_selective_scan);
  op.allow_inplace().donates("states", 1).splits_as("attention");
  // Channels that do not fill vectors or parts, states that do not fill chains, and sequences as in causal_conv1d.
  struct Widths {
    std::int64_t channels, state;
  };
  for (const auto& [channels, state] : {Widths{32, 16}, {21, 5}, {300, 16}})
    for (const int block : {4, 16}) {
      const KvLayout layout{.dtype = DType::f32, .block = block, .heads = 1, .head_dim = channels, .state_rows = state};
      // Steps and decays are small, as with larger ones states grow without bound.
      op.sample({{"x", {30, channels}},
                 {"step", {30, channels}, DType::f32, Fill::codes},
                 {"decay", {state, channels}, DType::f32, Fill::codes},
                 {"input", {30, state}},
                 {"output", {30, state}},
                 SampleTensor::pages("states", layout, 4 * (40 / block + 1)),
                 SampleTensor::batch("batch", {{1, 33}, {9, 9}, {19, 22}, {1, 1}}, block),
                 {"slots", {30}, DType::i64, Fill::indices}});
    }
  // Sums over up to 16 rows of a state; their order is free, and products may be fused with them.
  op.tolerance(DType::f32, {.absolute = 2e-5, .relative = 2e-5});
}
