#include "ops/attention.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value attention(const Value& query, const Value& kv, const Value& batch, const Value& sinks, const Value& bias,
                Scalar scale, std::optional<std::int64_t> window, Scalar softcap, bool causal, CallSite site) {
  return call(site, "attention", {query, kv, batch, sinks, bias},
              {{"scale", scale.value}, {"window", window}, {"softcap", softcap.value}, {"causal", causal}})[0];
}

void check_attention_window(const Attributes& attributes, const char* op) {
  const Attribute& window = attributes.at("window");
  USER_CHECK(window.is_none() || (window.dim().is_number() && window.integer() >= 1),
             "[{}] window must be 1 or more tokens, a row's own among them, or none, but is {}", op, window.text());
}

namespace {

constexpr std::size_t kSinks = 3, kBias = 4;

std::vector<Meta> results_of_attention(const OpRequest& request) {
  const Meta& query = request.operand(0);
  const Meta& kv = request.operand(1);
  const Meta& batch = request.operand(2);
  require_floating(query, "attention", "query");
  USER_CHECK(kv.kind == MetaKind::kv, "[attention] kv must be KV pages, but is {}", kv.text());
  USER_CHECK(batch.kind == MetaKind::batch, "[attention] batch must be a batch, but is {}", batch.text());
  USER_CHECK(query.rank() == 3 && query.shape[1].is_number() && query.shape[2] == Dim(kv.kv.head_dim) &&
                 query.shape[1].number() % kv.kv.heads == 0,
             "[attention] query must be [tokens, a multiple of {} heads, {}] to match {}, but is {}", kv.kv.heads,
             kv.kv.head_dim, kv.text(), query.text());
  if (request.has(kSinks)) {
    const Meta& sinks = request.operand(kSinks);
    USER_CHECK(sinks.is_tensor() && is_floating(sinks.dtype) && sinks.shape == Shape{query.shape[1]},
               "[attention] sinks must be float[{}] to match query: {}, but is {}", query.shape[1].text(), query.text(),
               sinks.text());
  }
  if (request.has(kBias)) {
    const Meta& bias = request.operand(kBias);
    USER_CHECK(bias.is_tensor() && bias.dtype == DType::f32 && bias.rank() == 2 && bias.shape[0] == query.shape[1] &&
                   bias.shape[1].is_number() && bias.shape[1].number() % 2 == 1,
               "[attention] bias must be f32[{}, an odd number of distances] to match query: {}, but is {}",
               query.shape[1].text(), query.text(), bias.text());
  }
  check_attention_window(request.attributes, "attention");
  const double softcap = request.attributes.at("softcap").real();
  USER_CHECK(softcap >= 0, "[attention] softcap must be a bound of the scores or 0, but is {}", softcap);
  return std::vector<Meta>{Meta::tensor(query.dtype, query.shape)};
}

// With a column for every distance, and for fewer of them; also with a window, sinks and a bound of the scores.
void add_samples_with_bias(OpDefinition& op) {
  for (const std::int64_t columns : {1, 39, 2 * 70 - 1})
    for (const DType pages : {DType::f32, DType::bf16, DType::q8_0})
      op.sample({{"query", {9, 4, 32}},
                 SampleTensor::pages("kv", {.dtype = pages, .block = 16, .heads = 2, .head_dim = 32}, 15),
                 SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, 16),
                 {"bias", {4, columns}, DType::f32}},
                {{"scale", 0.25}});
  op.sample({{"query", {9, 4, 24}},
             SampleTensor::pages("kv", {.dtype = DType::f16, .block = 5, .heads = 4, .head_dim = 24}, 45),
             SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, 5),
             {"sinks", {4}, DType::f32},
             {"bias", {4, 25}, DType::f32}},
            {{"scale", 0.25}, {"window", 11}, {"softcap", 1.5}});
  for (const Attribute& window : {Attribute(), Attribute(150)})
    for (const DType pages : {DType::f32, DType::bf16})
      op.sample({{"query", {391, 4, 32}},
                 SampleTensor::pages("kv", {.dtype = pages, .block = 16, .heads = 2, .head_dim = 32}, 80),
                 SampleTensor::batch("batch", {{300, 300}, {1, 1}, {63, 63}, {27, 90}}, 16),
                 {"bias", {4, 255}, DType::f32}},
                {{"scale", 0.25}, {"window", window}, {"causal", false}});
}

}  // namespace
}  // namespace weft

OP(attention) {
  op.schema(
        "attention(Tensor query, Tensor kv, Tensor batch, Tensor? sinks, Tensor? bias, float scale, int? window=None, "
        "float softcap=0.0, bool causal=True) -> Tensor")
      .function(&weft::attention);
  op.gives(results_of_attention);
  for (DType pages : {DType::f32, DType::f16})
    for (int block : {1, 16, 32}) {
      const KvLayout layout{.dtype = pages, .block = block, .heads = 2, .head_dim = 16};
      const int count = 3 * (80 / block + 1);
      op.sample({{"query", {9, 4, 16}},
                 SampleTensor::pages("kv", layout, count),
                 SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, block)},
                {{"scale", 0.25}});
    }
  for (DType codes : {DType::f8e4m3, DType::q8_0})
    for (int block : {5, 16})
      op.sample({{"query", {9, 4, 32}},
                 SampleTensor::pages("kv", {.dtype = codes, .block = block, .heads = 2, .head_dim = 32}, 50),
                 SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, block)},
                {{"scale", 0.25}});
  op.sample({{"query", {9, 4, 24}},
             SampleTensor::pages("kv", {.dtype = DType::f8e4m3, .block = 16, .heads = 2, .head_dim = 24}, 15),
             SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, 16)},
            {{"scale", 0.25}, {"window", 11}});
  for (DType pages : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0})
    for (int block : {5, 16}) {
      const KvLayout layout{.dtype = pages, .block = block, .heads = 1, .head_dim = 96, .keys_are_values = true};
      op.sample({{"query", {9, 5, 96}},
                 SampleTensor::pages("kv", layout, 3 * (80 / block + 1)),
                 SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, block)},
                {{"scale", 0.125}});
    }
  // Windows of one token (itself), part of a page, one page, several pages, and more than the whole context.
  for (const int window : {1, 5, 16, 40, 1000})
    op.sample({{"query", {9, 4, 16}},
               SampleTensor::pages("kv", {.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 16}, 15),
               SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, 16)},
              {{"scale", 0.25}, {"window", window}});
  // Head sizes and row counts that the matrix units of GPUs support.
  op.sample({{"query", {28, 4, 64}},
             SampleTensor::pages("kv", {.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 64}, 9),
             SampleTensor::batch("batch", {{26, 40}, {1, 20}, {1, 7}}, 16)},
            {{"scale", 0.125}});
  op.sample({{"query", {28, 4, 64}},
             SampleTensor::pages("kv", {.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 64}, 9),
             SampleTensor::batch("batch", {{26, 40}, {1, 20}, {1, 7}}, 16)},
            {{"scale", 0.125}, {"window", 11}});
  // Sinks, a bound of the scores, and both, with a window and heads of other sizes.
  for (const bool windowed : {false, true})
    for (const bool has_sinks : {false, true})
      for (const std::int64_t width : {24, 80}) {
        std::vector<SampleTensor> tensors{
            {"query", {9, 4, width}},
            SampleTensor::pages(
                "kv", {.dtype = windowed ? DType::f16 : DType::bf16, .block = 16, .heads = 2, .head_dim = width}, 15),
            SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, 16)};
        if (has_sinks) tensors.push_back({"sinks", {4}, DType::f32});
        NamedAttributes attributes{{"scale", 0.25}, {"softcap", has_sinks && windowed ? 0.0 : 1.5}};
        if (windowed) attributes.emplace_back("window", 11);
        op.sample(std::move(tensors), std::move(attributes));
      }
  // Rows that attend to later tokens, too: all of them, or those in a window on both sides. Sequences of several blocks
  // of rows and of several segments, and one whose earlier tokens are not in this step.
  for (const Attribute& window : {Attribute(), Attribute(1), Attribute(7), Attribute(150)})
    for (const DType pages : {DType::f32, DType::bf16})
      op.sample({{"query", {391, 4, 32}},
                 SampleTensor::pages("kv", {.dtype = pages, .block = 16, .heads = 2, .head_dim = 32}, 80),
                 SampleTensor::batch("batch", {{300, 300}, {1, 1}, {63, 63}, {27, 90}}, 16)},
                {{"scale", 0.25}, {"window", window}, {"causal", false}});
  weft::add_samples_with_bias(op);
  // Softmax over up to 70 tokens; the order of the sums is free.
  op.tolerance(DType::f32, {.absolute = 2e-5, .relative = 2e-5});
  op.tolerance(DType::f16, {.absolute = 2e-3, .relative = 2e-3});
  // Kernels may round probabilities to bf16: by half a step, 2^-9, of values of up to 4.
  op.tolerance(DType::bf16, {.absolute = 8e-3, .relative = 1.6e-2});
}
