// Every kernel that declares batch_invariant is so: a row has the same bits alone and at any position of a batch of 1
// to 64 rows, for any neighbours and any cut of the rows into chunks. Tested on the samples of every op, with the
// needed number of rows, at every level of instruction sets of this host, with plain and packed weights.

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/run_kernel.h"
#include "ir/meta_evaluator.h"
#include "tests/test_context.h"

namespace weft::batch_invariance_slow_test {

constexpr std::int64_t kRows = 64;

struct RowsCall {
  SampleCall call;                // of kRows rows
  std::vector<bool> has_rows;     // by operand
  std::vector<bool> result_rows;  // by result: whether its row i belongs to row i of the operands
  std::string skipped;            // the reason if there is no such call
};

std::int64_t dim0(const Tensor& tensor) {
  const bool ranked = tensor.defined() && tensor.meta.is_tensor() && tensor.meta.rank() > 0;
  return ranked ? tensor.meta.shape[0].number() : -1;
}

RowsCall rows_call(const Op& op, const OpTable& ops, const Sample& sample, DType dtype) {
  if (op.is_allocation) return {.skipped = "its contents are undefined"};
  if (op.is_view) return {.skipped = "a view has no kernel"};
  for (const SampleTensor& tensor : sample.tensors)
    if (tensor.kind != MetaKind::tensor) return {.skipped = "its rows come through pages (tests/engine)"};
  if (op.rows_of < 0) return {.skipped = "it has no rows"};
  const std::set<std::size_t> tensors = tensors_with_rows(op, ops, sample);
  if (tensors.empty()) return {.skipped = "its rows cannot be more"};
  RowsCall made{.call = make_sample_call(op, with_row_count(sample, tensors, kRows), dtype)};
  const auto fewer = sample_metas(op, with_row_count(sample, tensors, kRows - 1), dtype);
  for (std::size_t i = 0; i < fewer.size(); ++i)
    made.has_rows.push_back(fewer[i] && fewer[i]->shape != made.call.operands[i].meta.shape);
  const auto more_results = infer_results(op, ops, metas_of(made.call.operands), made.call.attributes);
  const auto fewer_results = infer_results(op, ops, fewer, made.call.attributes);
  for (std::size_t i = 0; i < more_results.size(); ++i)
    made.result_rows.push_back(more_results[i].shape[0] == Dim(kRows) && fewer_results[i].shape[0] == Dim(kRows - 1));
  if (std::count(made.result_rows.begin(), made.result_rows.end(), true) == 0)
    made.skipped = "its results do not follow its rows";
  return made;
}

// These rows of the tensor, in this order.
Tensor gathered(const Tensor& tensor, const std::vector<std::int64_t>& rows) {
  Meta meta = tensor.meta;
  meta.shape[0] = static_cast<std::int64_t>(rows.size());
  Tensor part = Tensor::empty(meta);
  const std::int64_t bytes = tensor.meta.bytes().number() / dim0(tensor);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::memcpy(part.data() + static_cast<std::int64_t>(i) * bytes, tensor.data() + rows[i] * bytes,
                static_cast<std::size_t>(bytes));
  return part;
}

// One kernel on one call, in batches.
class Batches {
 public:
  Batches(const Context& context, const Op& op, const Kernel& kernel, const RowsCall& rows)
      : context_(context), op_(op), kernel_(kernel), rows_(rows), evaluator_(context.ops) {}

  // Whether the kernel takes batches of every size. Then `different` names the first row that differed.
  bool run(bool every_size) {
    std::vector<std::int64_t> all(kRows);
    std::iota(all.begin(), all.end(), 0);
    for (const std::int64_t row : all)
      if (!run_batch({row})) return false;
    for (std::int64_t size = 1; size <= kRows; ++size) {
      if (!every_size && size > 5 && size != 8 && size % 16 > 1) continue;
      for (std::int64_t begin = 0; begin < kRows; begin += size)
        if (!run_batch({all.begin() + begin, all.begin() + std::min(begin + size, kRows)})) return false;
    }
    // Every row at other positions, before other neighbours.
    for (const std::int64_t size : {2, 7, 16, 33, 64})
      for (std::int64_t turn = 0; turn < size; turn += 1 + size / 8) {
        std::vector<std::int64_t> batch;
        for (std::int64_t i = 0; i < size; ++i) batch.push_back((turn * 5 + i * 11) % kRows);
        if (!run_batch(batch)) return false;
      }
    return true;
  }

  std::string different;

 private:
  bool run_batch(const std::vector<std::int64_t>& rows) {
    Values operands;
    for (std::size_t i = 0; i < rows_.call.operands.size(); ++i) {
      const Tensor& tensor = rows_.call.operands[i];
      if (!tensor.defined()) {
        operands.emplace_back();
      } else {
        operands.push_back(Value::concrete(evaluator_, rows_.has_rows[i] ? gathered(tensor, rows) : tensor));
      }
    }
    const auto metas = operand_metas(operands);
    const auto results = infer_results(op_, context_.ops, metas, rows_.call.attributes);
    const auto count = static_cast<std::int64_t>(rows.size());
    if (count < kernel_.rows.lo || count > kernel_.rows.hi) return false;
    if (!kernel_.supports({metas, results, rows_.call.attributes, {count, count}})) return false;
    const std::vector<Tensor> came =
        run_kernel(op_, kernel_, operands, rows_.call.attributes, results, false, *context_.threads);
    for (std::size_t i = 0; i < came.size(); ++i) {
      if (!rows_.result_rows[i]) continue;
      const Tensor result = contiguous(came[i]);
      for (std::size_t k = 0; k < rows.size(); ++k)
        compare(i, rows, k, gathered(result, {static_cast<std::int64_t>(k)}));
    }
    return true;
  }

  // Compares with the row alone, which runs first.
  void compare(std::size_t result, const std::vector<std::int64_t>& rows, std::size_t at, const Tensor& row) {
    const auto [alone, is_new] = alone_.try_emplace({result, rows[at]}, row);
    const auto bytes = static_cast<std::size_t>(row.storage->bytes());
    if (is_new || !different.empty() || std::memcmp(alone->second.data(), row.data(), bytes) == 0) return;
    different = fmt::format("row {} comes out otherwise at place {} of a batch of {} than alone, in result {}",
                            rows[at], at, rows.size(), result);
  }

  const Context& context_;
  const Op& op_;
  const Kernel& kernel_;
  const RowsCall& rows_;
  MetaEvaluator evaluator_;  // a home for values
  std::map<std::pair<std::size_t, std::int64_t>, Tensor> alone_;
};

// The call unchanged, and with its weight in every packing that accepts it.
std::vector<RowsCall> with_packings(const Context& context, const Op& op, const RowsCall& plain) {
  std::vector<RowsCall> calls = {plain};
  const int index = op.schema.parameter_index("weight");
  if (index < 0) return calls;
  const auto at = static_cast<std::size_t>(index);
  const Tensor& weight = plain.call.operands[at];
  if (!weight.defined() || weight.meta.rank() < 2 || plain.has_rows[at]) return calls;
  for (const auto& [name, packing] : context.kernels.packings()) {
    if (!packing.accepts(weight.meta, context.device)) continue;
    RowsCall packed = plain;
    packed.call.operands[at] = pack_weight(packing, {&weight, 1}, *context.threads);
    packed.call.text += " packed=" + name;
    calls.push_back(std::move(packed));
  }
  return calls;
}

class BatchInvariance : public testing::TestWithParam<std::string> {
 protected:
  BatchInvariance() : context_(test_context(GetParam())) {}

  void prove(const Op& op, const RowsCall& call) {
    SCOPED_TRACE(call.call.text);
    for (const std::string& provider : context_->kernels.providers(op.name)) {
      const Kernel* kernel = context_->kernels.find(op.name, provider);
      if (kernel == nullptr) continue;
      const std::string name = op.name + "@" + provider;
      Batches batches(*context_, op, *kernel, call);
      if (!batches.run(provider != "reference")) continue;
      if (kernel->batch_invariant) {
        EXPECT_EQ(batches.different, "") << name << " declares batch_invariant";
        ++proved_[name];
      } else {
        ++declared_false_[name];
        differ_ += batches.different.empty() ? 0 : 1;
      }
    }
  }

  std::shared_ptr<Context> context_;
  std::map<std::string, int> proved_, declared_false_;    // kernel to calls
  std::map<std::string, std::set<std::string>> skipped_;  // reason to ops
  std::set<std::string> tried_;                           // ops
  int differ_ = 0;
};

TEST_P(BatchInvariance, HoldsForEveryKernelThatDeclaresIt) {
  for (const std::string& name : context_->kernels.ops()) {
    const Op& op = context_->ops.at(name);
    for (const Sample& sample : op.samples)
      for (const DType dtype : sample_dtypes(sample)) {
        const RowsCall call = rows_call(op, context_->ops, sample, dtype);
        if (!call.skipped.empty()) {
          skipped_[call.skipped].insert(name);
          continue;
        }
        tried_.insert(name);
        for (const RowsCall& packed : with_packings(*context_, op, call)) prove(op, packed);
      }
  }
  int calls = 0, false_calls = 0;
  for (const auto& [kernel, count] : proved_) calls += count;
  for (const auto& [kernel, count] : declared_false_) false_calls += count;
  std::cout << fmt::format("count: {} kernels hold on {} calls; {} declare nothing ({} calls, {} of which differ)\n",
                           proved_.size(), calls, declared_false_.size(), false_calls, differ_);
  for (const auto& [reason, ops] : skipped_)
    std::cout << fmt::format("count: {} ops skipped, {}: {}\n", ops.size(), fmt::join(ops, ", "), reason);
  context_->kernels.for_each([&](const Kernel& kernel) {
    const bool here = context_->kernels.find(kernel.op, kernel.provider) != nullptr;
    const std::string name = kernel.op + "@" + kernel.provider;
    EXPECT_TRUE(!here || !tried_.contains(kernel.op) || proved_.contains(name) || declared_false_.contains(name))
        << name << " took none of the calls";
  });
  EXPECT_GT(proved_.size(), 40u);
  EXPECT_EQ(
      skipped_["its rows come through pages (tests/engine)"],
      (std::set<std::string>{"attention", "attention_scaled_fp4_quant", "attention_static_scaled_fp8_quant",
                             "fused_qk_norm_rope_kv_cache_update", "fused_rope_kv_cache_update", "kv_cache_update"}));
}

INSTANTIATE_TEST_SUITE_P(Ceilings, BatchInvariance, testing::ValuesIn(cpu_features_to_try()),
                         [](const auto& level) { return level.param; });

}  // namespace weft::batch_invariance_slow_test
