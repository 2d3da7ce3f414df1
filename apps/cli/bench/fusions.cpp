#include "apps/cli/bench/fusions.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "apps/cli/bench/copy.h"
#include "apps/cli/bench/ops_calls.h"
#include "base/error.h"
#include "compiler/run/sample_call.h"
#include "compiler/tune/kernel_timer.h"
#include "compiler/tune/parts_timer.h"

namespace weft {
namespace {

constexpr std::int64_t kOwnCaches = 256 << 10;           // of a core; what is smaller is timed there
constexpr std::int64_t kBeyondSharedCaches = 128 << 20;  // four times what the cores of a server share
constexpr double kMostRepeatsInPlace = 200;              // in place sums grow with every run

// Of the call's KV pages, if it has any.
struct PageBytes {
  std::int64_t all = 0;  // read by who looks at the cache
  std::int64_t put = 0;  // written by who puts in rows: a key and a value for each element of `value`
};

PageBytes page_bytes(const Op& op, const std::vector<Tensor>& operands) {
  PageBytes bytes;
  for (const Tensor& pages : operands) {
    if (!pages.defined() || pages.meta.kind != MetaKind::kv) continue;
    bytes.all = pages.storage->bytes();
    const int value = op.schema.parameter_index("value");
    if (value < 0) continue;
    const Shape& rows = operands[static_cast<std::size_t>(value)].meta.shape;
    bytes.put = 2 * bytes_of(pages.meta.kv.dtype, element_count(rows).number());
  }
  return bytes;
}

// Of its elements: a half of each row spans the other halves too, and a row for all rows is one row.
std::int64_t bytes_of_elements(const Meta& tensor) {
  return std::min(tensor.bytes().number(), bytes_of(tensor.dtype, element_count(tensor.shape).number()));
}

// Who gives pages back has put rows in and reads no others.
std::int64_t bytes_read(const std::vector<Meta>& operands, const std::vector<Meta>& results, const PageBytes& pages) {
  const bool puts =
      std::any_of(results.begin(), results.end(), [](const Meta& result) { return result.kind == MetaKind::kv; });
  std::int64_t bytes = 0;
  for (const Meta& operand : operands) {
    if (operand.is_tensor()) bytes += bytes_of_elements(operand);
    if (operand.kind == MetaKind::kv && !puts) bytes += pages.all;
  }
  return bytes;
}

std::int64_t bytes_written(const Meta& result, const PageBytes& pages) {
  return result.kind == MetaKind::kv ? pages.put : result.is_tensor() ? bytes_of_elements(result) : 0;
}

std::vector<Meta> metas_of_views(const std::vector<PlanView>& views) {
  std::vector<Meta> metas;
  for (const PlanView& view : views)
    if (view.slot >= 0) metas.push_back(view.meta);
  return metas;
}

FusionContender contender_of(const Plan& plan, const PageBytes& pages) {
  FusionContender contender;
  for (const PlanStep& step : plan.steps) {
    const std::vector<Meta> results = metas_of_views(step.results);
    contender.bytes += bytes_read(metas_of_views(step.operands), results, pages);
    for (const Meta& result : results) contender.bytes += bytes_written(result, pages);
    if (!contender.kernels.empty()) contender.kernels += "+";
    contender.kernels +=
        step.kernel->origin == "generated" ? "generated" : fmt::format("{}@{}", step.op, step.kernel->provider);
  }
  return contender;
}

std::vector<Tensor> duplicates(const std::vector<Tensor>& operands) {
  std::vector<Tensor> copies;
  for (const Tensor& operand : operands) copies.push_back(operand.defined() ? duplicate(operand) : operand);
  return copies;
}

// One fused op on one call.
class FusionBench {
 public:
  FusionBench(const Context& context, const FusionBenchOptions& options, const Op& op, const SampleCall& call,
              std::int64_t rows)
      : context_(context),
        options_(options),
        op_(op),
        call_(call),
        parts_(plan(TimedForm::unfused, rows)),
        fused_(plan(TimedForm::op, rows)) {}

  FusionBenchRow run(std::int64_t rows, std::int64_t columns) {
    const PageBytes pages = page_bytes(op_, call_.operands);
    FusionBenchRow row{.op = op_.name, .call = call_.text, .rows = rows, .columns = columns};
    row.unfused = contender_of(*parts_, pages);
    row.fused = contender_of(*fused_, pages);
    const CopiedBytes copied = copied_bytes(pages);
    row.copy = {.kernels = "copy", .bytes = copied.bytes()};
    row.iterations = row.copy.bytes < kOwnCaches ? 1 : kBeyondSharedCaches / row.copy.bytes + 1;
    std::vector<Iteration> iterations;
    for (std::int64_t iteration = 0; iteration < row.iterations; ++iteration)
      iterations.push_back({PartsTimer(context_, fused_, duplicates(call_.operands)),
                            PartsTimer(context_, parts_, duplicates(call_.operands)),
                            PlainCopy(*context_.threads, copied.read, copied.over, copied.written)});
    time(iterations, row);
    return row;
  }

 private:
  // Memory of its own for each of the ways.
  struct Iteration {
    PartsTimer fused, parts;
    PlainCopy copy;
  };
  // What whoever computes the op has to move.
  struct CopiedBytes {
    std::int64_t read = 0, over = 0, written = 0;
    std::int64_t bytes() const { return read + 2 * over + written; }
  };

  std::shared_ptr<const Plan> plan(TimedForm form, std::int64_t rows) const {
    return plan_of_call(context_, op_, metas_of(call_.operands), call_.attributes, {rows, rows}, form);
  }

  // Results in the storage of operands: the kernel overwrites what it reads.
  CopiedBytes copied_bytes(const PageBytes& pages) const {
    std::vector<Meta> operands;
    for (const Tensor& operand : call_.operands)
      if (operand.defined()) operands.push_back(operand.meta);
    const std::vector<Meta> results = infer_results(op_, context_.ops, metas_of(call_.operands), call_.attributes);
    CopiedBytes copied{.read = bytes_read(operands, results, pages)};
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::int64_t bytes = bytes_written(results[i], pages);
      const PlanSlot& slot = fused_->slots[static_cast<std::size_t>(fused_->results[i].slot)];
      const bool is_over = results[i].is_tensor() && slot.kind == SlotKind::input;
      copied.read -= is_over ? bytes : 0;
      (is_over ? copied.over : copied.written) += bytes;
    }
    return copied;
  }

  void time(std::vector<Iteration>& iterations, FusionBenchRow& row) const {
    const std::function<double()> still = [] { return 0.0; };
    const std::array<std::function<void(Iteration&)>, 3> ways = {
        [&](Iteration& iteration) { iteration.parts.seconds(still); },
        [&](Iteration& iteration) { iteration.fused.seconds(still); },
        [](Iteration& iteration) { iteration.copy.run(); }};
    const std::array<FusionContender*, 3> contenders = {&row.unfused, &row.fused, &row.copy};
    std::array<std::size_t, 3> next{};
    std::array<int, 3> repeats{1, 1, 1};
    const auto seconds = [&](std::size_t way) {
      const double start = options_.clock();
      for (int i = 0; i < repeats[way]; ++i) ways[way](iterations[next[way]++ % iterations.size()]);
      return (options_.clock() - start) / repeats[way];
    };
    for (std::size_t way = 0; way < ways.size(); ++way) {
      for (std::size_t iteration = 0; iteration < iterations.size(); ++iteration)
        ways[way](iterations[iteration]);  // pages come to be
      repeats[way] =
          static_cast<int>(std::clamp(kTimingBatchSeconds / std::max(seconds(way), 1e-9), 1.0, kMostRepeatsInPlace));
    }
    for (std::int64_t round = 0; round < options_.rounds; ++round)
      for (std::size_t way = 0; way < ways.size(); ++way) contenders[way]->seconds.push_back(seconds(way));
  }

  const Context& context_;
  const FusionBenchOptions& options_;
  const Op& op_;
  const SampleCall& call_;
  std::shared_ptr<const Plan> parts_, fused_;
};

}  // namespace

double FusionContender::best() const { return std::max(1e-9, *std::min_element(seconds.begin(), seconds.end())); }

std::vector<std::string> benched_fusions(const Context& context) {
  std::vector<std::string> names;
  for (const std::string& name : fused_ops(context)) {
    const Op& op = context.ops.at(name);
    if (op.schema.parameter_index("world_size") < 0 && !op.samples.empty()) names.push_back(name);
  }
  return names;
}

void check_fusion_bench(const Context& context, const FusionBenchOptions& options) {
  const std::vector<std::string> known = benched_fusions(context);
  for (const std::string& op : options.ops)
    USER_CHECK(std::count(known.begin(), known.end(), context.ops.at(op).name) > 0,
               "[--op] {} is not a fused op: no fusion puts it into graphs", op);
}

void bench_fusions(const Context& context, const FusionBenchOptions& options,
                   const std::function<void(const FusionBenchRow&)>& on_row) {
  for (const std::string& name : options.ops.empty() ? benched_fusions(context) : options.ops) {
    const Op& op = context.ops.at(name);
    for (const std::int64_t columns : options.columns)
      for (const std::int64_t rows : options.rows)
        for (const SampleCall& call : sample_calls(op, resized(op, context.ops, rows, columns, options.group))) {
          infer_results(op, context.ops, metas_of(call.operands), call.attributes);
          on_row(FusionBench(context, options, op, call, rows).run(rows, columns));
        }
  }
}

}  // namespace weft
