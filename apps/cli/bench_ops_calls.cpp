#include "apps/cli/bench_ops_calls.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace weft {
namespace {

using plugin_check::TrialCall;

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

// The sample with `rows` rows in the tensors of these numbers; what comes through pages is one sequence.
Sample with_row_count(Sample sample, const std::set<std::size_t>& tensors, std::int64_t rows) {
  const int tokens = static_cast<int>(rows), length = std::max(tokens, kCachedTokens);
  bool has_pages = false;
  for (SampleTensor& tensor : sample.tensors) {
    if (tensor.kind == MetaKind::batch) tensor.rows_and_length = {{tokens, length}};
    if (tensor.kind != MetaKind::kv) continue;
    has_pages = true;
    tensor.shape[0] = std::max<std::int64_t>(tensor.shape[0], length / tensor.kv.block + 1);
  }
  for (const std::size_t index : tensors) {
    SampleTensor& tensor = sample.tensors[index];
    // Indices point at as many things as before; slots of pages, which became more, stay distinct.
    if (tensor.fill == Fill::indices && tensor.limit == 0 && !has_pages) tensor.limit = tensor.shape[0];
    tensor.shape[0] = rows;
  }
  return sample;
}

std::vector<TrialCall> calls_of(const Op& op, Sample sample) {
  Op single = op;
  single.samples = {std::move(sample)};
  return plugin_check::trial_calls(single);
}

bool is_legal(const Op& op, const OpTable& ops, const Sample& sample) {
  try {
    for (const TrialCall& call : calls_of(op, sample))
      infer_results(op, ops, plugin_check::metas_of(call.operands), call.attributes);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// The tensors of a sample that have its rows: the one the op says, with all that must follow it. None where the rows
// cannot be others.
std::set<std::size_t> tensors_with_rows(const Op& op, const OpTable& ops, const Sample& sample) {
  if (op.rows_of < 0) return {};
  const std::string& name = op.schema.parameters[static_cast<std::size_t>(op.rows_of)].name;
  const auto first = std::find_if(sample.tensors.begin(), sample.tensors.end(),
                                  [&](const SampleTensor& tensor) { return tensor.name == name; });
  if (first == sample.tensors.end() || first->kind != MetaKind::tensor || first->shape.empty()) return {};
  const std::int64_t rows = first->shape[0];
  std::set<std::size_t> all, one = {static_cast<std::size_t>(first - sample.tensors.begin())};
  for (std::size_t i = 0; i < sample.tensors.size(); ++i)
    if (sample.tensors[i].kind == MetaKind::tensor && !sample.tensors[i].shape.empty() &&
        sample.tensors[i].shape[0] == rows)
      all.insert(i);
  for (const std::set<std::size_t>& tensors : {one, all})
    if (is_legal(op, ops, with_row_count(sample, tensors, rows + 1))) return tensors;
  return {};
}

}  // namespace

std::vector<plugin_check::TrialCall> bench_calls(const Op& op, const OpTable& ops,
                                                 const std::vector<std::int64_t>& row_counts) {
  std::vector<Sample> samples = op.samples;
  for (Sample& sample : model_samples(op.name)) samples.push_back(std::move(sample));
  std::vector<plugin_check::TrialCall> calls;
  std::set<std::string> seen;
  const auto add = [&](const Sample& sample) {
    for (plugin_check::TrialCall& call : calls_of(op, sample))
      if (seen.insert(call.text).second) calls.push_back(std::move(call));
  };
  for (const Sample& sample : samples) {
    const std::set<std::size_t> tensors = tensors_with_rows(op, ops, sample);
    if (tensors.empty()) add(sample);
    for (const std::int64_t rows : row_counts)
      if (!tensors.empty()) add(with_row_count(sample, tensors, rows));
  }
  return calls;
}

}  // namespace weft
