#include "apps/cli/bench/ops_calls.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace weft {
namespace {

constexpr int kCachedTokens = 512;  // of the sequence that attention sees, at least

// Shapes of the layers of a small model: 576 features, 1536 hidden ones.
std::vector<Sample> model_samples(const std::string& op) {
  constexpr std::int64_t kFeatures = 576, kHidden = 1536;
  std::vector<Sample> samples;
  if (op == "linear")
    for (const DType weight : {DType::f32, DType::bf16, DType::q4_1})
      samples.push_back({{{"x", {1, kFeatures}, DType::f32}, {"weight", {kHidden, kFeatures}, weight}}, {}});
  if (op == "linear_int8")
    for (const DType weight : {DType::q4_1, DType::q8_0})
      samples.push_back({{{"x", {1, kFeatures}, DType::i8, Fill::codes},
                          {"scale", {1, kFeatures / 32}, DType::f32, Fill::codes},
                          {"weight", {kHidden, kFeatures}, weight}},
                         {}});
  return samples;
}

constexpr std::int64_t kHeadDim = 64, kPageTokens = 16;

bool has_query(const Sample& sample) {
  return std::any_of(sample.tensors.begin(), sample.tensors.end(),
                     [](const SampleTensor& tensor) { return tensor.name == "query"; });
}

std::int64_t key_heads(std::int64_t heads) {
  std::int64_t most = std::max<std::int64_t>(heads / 2, 1);
  while (heads % most != 0) --most;
  return most;
}

// Each tensor by what its dims count.
Sample with_heads(Sample sample, std::int64_t heads) {
  for (SampleTensor& tensor : sample.tensors) {
    const std::int64_t own = tensor.name == "query" ? heads : key_heads(heads);
    if (tensor.kind == MetaKind::kv) {
      tensor = SampleTensor::pages(tensor.name,
                                   {.dtype = DType::f16, .block = kPageTokens, .heads = own, .head_dim = kHeadDim}, 1);
    } else if (tensor.kind == MetaKind::batch) {
      tensor.kv.block = kPageTokens;
    } else if (tensor.name == "query" || tensor.name == "key" || tensor.name == "value") {
      if (tensor.shape.size() == 3) tensor.shape[1] = own;
      tensor.shape.back() = tensor.shape.size() == 3 ? kHeadDim : own * kHeadDim;
    } else if (tensor.name == "query_weight" || tensor.name == "key_weight" || tensor.name == "cos_sin_cache") {
      tensor.shape.back() = kHeadDim;
    }
  }
  for (auto& [name, value] : sample.attributes)
    if (name == "head_size" || name == "rotary_dim") value = kHeadDim;
  return sample;
}

// The pages and the batch of one sequence, of which this step has `rows` tokens.
Sample with_one_sequence(Sample sample, std::int64_t rows) {
  const int tokens = static_cast<int>(rows), length = std::max(tokens, kCachedTokens);
  for (SampleTensor& tensor : sample.tensors) {
    if (tensor.kind == MetaKind::batch) tensor.rows_and_length = {{tokens, length}};
    if (tensor.kind == MetaKind::kv)
      tensor.shape[0] = std::max<std::int64_t>(tensor.shape[0], length / tensor.kv.block + 1);
  }
  return sample;
}

Sample with_columns(const Op& op, const OpTable& ops, std::int64_t rows, std::int64_t columns, std::int64_t group) {
  const SampleCall call = make_sample_call(op, op.samples[0], DType::f32);
  const Meta result = infer_results(op, ops, metas_of(call.operands), call.attributes)[0];
  USER_CHECK(!result.shape.empty(), "[{}] gives nothing that has columns", op.name);
  const std::int64_t before = std::max<std::int64_t>(result.shape.back().number(), 1);
  Sample sample = with_row_count(op.samples[0], tensors_with_rows(op, ops, op.samples[0]), rows);
  for (SampleTensor& tensor : sample.tensors)
    if (!tensor.shape.empty() && tensor.shape.back() % before == 0)
      tensor.shape.back() = tensor.shape.back() / before * columns;
  for (auto& [name, value] : sample.attributes)
    if (group > 0 && name == "group_size") value = group;
  if (op.schema.parameter_index("intermediate") >= 0) {
    std::erase_if(sample.attributes, [](const auto& attribute) { return attribute.first == "intermediate"; });
    sample.attributes.emplace_back("intermediate", EnumWord{"input_dtype"});
  }
  return sample;
}

}  // namespace

std::vector<SampleCall> bench_calls(const Op& op, const OpTable& ops, const std::vector<std::int64_t>& row_counts) {
  std::vector<Sample> samples = op.samples;
  for (Sample& sample : model_samples(op.name)) samples.push_back(std::move(sample));
  std::vector<SampleCall> calls;
  std::set<std::string> seen;
  const auto add = [&](const Sample& sample) {
    for (SampleCall& call : sample_calls(op, sample))
      if (seen.insert(call.text).second) calls.push_back(std::move(call));
  };
  for (const Sample& sample : samples) {
    const std::set<std::size_t> tensors = tensors_with_rows(op, ops, sample);
    if (tensors.empty()) add(sample);
    for (const std::int64_t rows : row_counts)
      if (!tensors.empty()) add(with_one_sequence(with_row_count(sample, tensors, rows), rows));
  }
  return calls;
}

Sample resized(const Op& op, const OpTable& ops, std::int64_t rows, std::int64_t columns, std::int64_t group) {
  const Sample& sample = op.samples[0];
  if (!has_query(sample)) return with_columns(op, ops, rows, columns, group);
  USER_CHECK(columns % kHeadDim == 0, "[{}] a query must have columns of whole heads of {}, but {} were asked for",
             op.name, kHeadDim, columns);
  const Sample with_rows = with_row_count(sample, tensors_with_rows(op, ops, sample), rows);
  return with_one_sequence(with_heads(with_rows, columns / kHeadDim), rows);
}

}  // namespace weft
