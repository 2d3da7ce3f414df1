#include "ops/linear_attention.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/recurrent.h"

namespace weft {

std::pair<Value, Value> linear_attention(const Value& query, const Value& key, const Value& value,
                                         const Value& log_decay, const Value& beta, const Value& states,
                                         const Value& batch, const Value& slots, Scalar scale, bool delta,
                                         CallSite site) {
  return call(site, "linear_attention", {query, key, value, log_decay, beta, states, batch, slots},
              {{"scale", scale.value}, {"delta", delta}});
}

std::pair<Value, Value> linear_attention(MaybeInplace, const Value& query, const Value& key, const Value& value,
                                         const Value& log_decay, const Value& beta, const Value& states,
                                         const Value& batch, const Value& slots, Scalar scale, bool delta,
                                         CallSite site) {
  return call(site, "linear_attention", {query, key, value, log_decay, beta, states, batch, slots},
              {{"scale", scale.value}, {"delta", delta}}, true);
}

namespace {

bool is_of_heads(const Meta& x) { return x.rank() == 3 && x.shape[1].is_number() && x.shape[2].is_number(); }

std::vector<Meta> results_of_linear_attention(const OpRequest& request) {
  enum Operand : std::size_t { kQuery, kKey, kValue, kLogDecay, kBeta, kStates, kBatch, kSlots };
  const Meta &query = request.operand(kQuery), &key = request.operand(kKey), &value = request.operand(kValue);
  for (const auto& [meta, name] : {std::pair(&query, "query"), {&key, "key"}, {&value, "value"}}) {
    require_floating(*meta, "linear_attention", name);
    USER_CHECK(is_of_heads(*meta), "[linear_attention] {} must be [tokens, heads, width], but is {}", name,
               meta->text());
  }
  USER_CHECK(key.shape == query.shape && key.dtype == query.dtype,
             "[linear_attention] key must be {} to match query, but is {}", query.text(), key.text());
  const std::int64_t heads = value.shape[1].number();
  USER_CHECK(value.dtype == query.dtype && value.shape[0] == query.shape[0] && heads % key.shape[1].number() == 0,
             "[linear_attention] value must be {}[{}, a multiple of {} heads, width] to match query: {}, but is {}",
             dtype_text(query.dtype), query.shape[0].text(), key.shape[1].text(), query.text(), value.text());
  for (const auto& [at, name] : {std::pair(kLogDecay, "log_decay"), {kBeta, "beta"}}) {
    const Meta& meta = request.operand(at);
    const Shape wanted{value.shape[0], value.shape[1]};
    USER_CHECK(meta.is_tensor() && meta.dtype == DType::f32 && meta.shape == wanted,
               "[linear_attention] {} must be f32[{}, {}] to match value: {}, but is {}", name, value.shape[0].text(),
               value.shape[1].text(), value.text(), meta.text());
  }
  const Meta& states = request.operand(kStates);
  const KvLayout& kv = states.kv;
  USER_CHECK(states.kind == MetaKind::kv && kv.dtype == DType::f32 && kv.heads == heads &&
                 Dim(kv.state_rows) == key.shape[2] && Dim(kv.head_dim) == value.shape[2],
             "[linear_attention] states must be pages of f32 with {} heads, {} state rows and {} columns, but is {}",
             heads, key.shape[2].text(), value.shape[2].text(), states.text());
  require_batch_and_slots(request.operand(kBatch), request.operand(kSlots), query.shape[0], "linear_attention");
  return {Meta::tensor(value.dtype, value.shape), states};
}

}  // namespace
}  // namespace weft

OP(linear_attention) {
  using Typed = std::pair<Value, Value>(const Value&, const Value&, const Value&, const Value&, const Value&,
                                        const Value&, const Value&, const Value&, Scalar, bool, CallSite);
  op.schema(
        "linear_attention(Tensor query, Tensor key, Tensor value, Tensor log_decay, Tensor beta, Tensor states, "
        "Tensor batch, Tensor slots, float scale, bool delta) -> (Tensor y, Tensor states)")
      .function(static_cast<Typed*>(&weft::linear_attention));
  op.gives(results_of_linear_attention);
  op.allow_inplace().donates("states", 1).splits_as("attention");
  // Values that do not fill vectors, keys that do not fill chains, and sequences as in causal_conv1d.
  struct Widths {
    std::int64_t key_heads, value_heads, key_dim, value_dim;
  };
  for (const auto& [key_heads, value_heads, key_dim, value_dim] :
       {Widths{2, 2, 16, 32}, {1, 3, 7, 5}, {2, 4, 64, 64}, {1, 2, 24, 40}})
    for (const bool delta : {false, true})
      for (const int block : {4, 16}) {
        const KvLayout layout{
            .dtype = DType::f32, .block = block, .heads = value_heads, .head_dim = value_dim, .state_rows = key_dim};
        // Keys are small, as with larger ones states grow without bound.
        std::vector<SampleTensor> tensors{{"query", {30, key_heads, key_dim}},
                                          {"key", {30, key_heads, key_dim}, std::nullopt, Fill::codes},
                                          {"value", {30, value_heads, value_dim}},
                                          {"log_decay", {30, value_heads}, DType::f32, Fill::codes},
                                          {"beta", {30, value_heads}, DType::f32, Fill::codes},
                                          SampleTensor::pages("states", layout, 4 * (40 / block + 1)),
                                          SampleTensor::batch("batch", {{1, 33}, {9, 9}, {19, 22}, {1, 1}}, block),
                                          {"slots", {30}, DType::i64, Fill::indices}};
        op.sample(std::move(tensors), {{"scale", 0.125}, {"delta", delta}});
      }
  // Sums over up to 64 rows of a state; their order is free, and products may be fused with them.
  op.tolerance(DType::f32, {.absolute = 2e-5, .relative = 2e-5});
}
